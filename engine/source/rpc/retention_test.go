package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// retentions are how nodes answer about slots that they do not keep any more.
var retentions = map[string]func(method string, slot, first ledger.Slot) string{
	"cleaned up":         func(string, ledger.Slot, ledger.Slot) string { return "" },
	"called skipped":     skippedBelow(-32007),
	"skipped, long-term": skippedBelow(-32009),
}

func skippedBelow(code int) func(method string, slot, first ledger.Slot) string {
	return func(method string, slot, first ledger.Slot) string {
		if method != "getBlock" || slot >= first {
			return ""
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":%d}}`, code)
	}
}

// keepsFrom has a node drop its blocks below a slot, and answer about them in its way.
func keepsFrom(n *fakeNode, first ledger.Slot, answer func(method string, slot, first ledger.Slot) string) {
	n.first = first
	n.fault = func(w http.ResponseWriter, method string, params []json.RawMessage) bool {
		var slot ledger.Slot
		if len(params) > 0 {
			_ = json.Unmarshal(params[0], &slot)
		}
		text := answer(method, slot, n.first)
		if text != "" {
			says(200, text)(w)
		}
		return text != ""
	}
}

// What the node does not keep any more is missing, however far below it is: nothing past it is emitted, and health names
// it. When the node has its blocks again, it goes on.
func TestBlocksBelowWhatTheNodeKeepsAreMissing(t *testing.T) {
	for name, answer := range retentions {
		for _, below := range []ledger.Slot{1, 100, 1000, 100_000, 2_000_000} {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t)
				first := 20 + below
				n.add(10, 11, first-1, first, first+1, first+2)
				keepsFrom(n, first, answer)
				c := n.config()
				c.Random = func(n int64) int64 { return n - 1 } // the longest pauses
				s := New(c)
				r := &recorder{}
				go func() {
					time.Sleep(time.Minute)
					r.mu.Lock()
					emitted := len(r.events)
					r.mu.Unlock()
					g := s.Upstream()
					if got := s.Trouble(); emitted != 0 || !g.Gap.Stuck || g.Gap.Why != upstream.OutOfRange || g.Gap.After != 10 || !strings.Contains(got, "missing and cannot be filled: "+upstream.OutOfRange.Reason()) {
						t.Errorf("%s, %d below: %d events, trouble %q, gap %+v", name, below, emitted, got, g.Gap)
					}
					n.mu.Lock()
					if calls := n.calledLocked(); calls > 300 {
						t.Errorf("%s, %d below: %d calls in a minute: %v", name, below, calls, n.calls)
					}
					n.first = 0
					n.mu.Unlock()
				}()
				r = followInto(t, s, at(10), r, untilSlot(first+2))
				wantSlots(t, r, 11, first-1, first, first+1, first+2)
				if g := s.Upstream(); g.Gap.Open() || g.GapsRepaired != 1 {
					t.Errorf("%s, %d below: figures after: %+v", name, below, g)
				}
			})
		}
	}
}

// That the node keeps nothing in between proves nothing: where its first block builds on what is held, there is
// nothing missing.
func TestTheFirstBlockThatIsKeptMayBeTheNext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 5000, 5001)
		n.first = 5000
		s := New(n.config())
		wantSlots(t, follow(t, s, at(10), untilSlot(5001)), 5000, 5001)
		if g := s.Upstream(); g.Gaps != 0 {
			t.Errorf("figures: %+v", g)
		}
	})
}

func TestAFreshNodeBeginsWithTheFirstBlockThatIsKept(t *testing.T) {
	for _, first := range []ledger.Slot{300, 3000, 3_000_000} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, first-1, first, first+1)
			n.first = first
			c := n.config()
			c.From = ledger.Some(ledger.Slot(1))
			s := New(c)
			wantSlots(t, follow(t, s, nil, untilSlot(first+1)), first, first+1)
			if g := s.Upstream(); g.Gaps != 0 || s.Trouble() != "" {
				t.Errorf("figures: %+v, %q", g, s.Trouble())
			}
		})
	}
}

// A node that cannot say what it keeps is looked through, in lists that stay within their bound.
func TestALongTimeWithoutBlocksIsGoneThrough(t *testing.T) {
	unknown := func(method string, _, _ ledger.Slot) string {
		if method != "getFirstAvailableBlock" {
			return ""
		}
		return `{"jsonrpc":"2.0","error":{"code":-32601}}`
	}
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 400_000, 400_001)
		keepsFrom(n, 0, unknown)
		widest, fault := ledger.Slot(0), n.fault
		n.fault = func(w http.ResponseWriter, method string, params []json.RawMessage) bool {
			if method == "getBlocks" {
				var from, to ledger.Slot
				_, _ = json.Unmarshal(params[0], &from), json.Unmarshal(params[1], &to)
				widest = max(widest, to-from+1)
			}
			return fault(w, method, params)
		}
		s := New(n.config())
		wantSlots(t, follow(t, s, at(10), untilSlot(400_001)), 11, 400_000, 400_001)
		if g := s.Upstream(); g.Gaps != 0 || widest != maxListed {
			t.Errorf("%d slots are listed at once; figures: %+v", widest, g)
		}
	})
	bubble.Test(t, func(t *testing.T) { // who fills a gap goes on as long as there is further to look
		n := startNode(t)
		n.add(10, 11, 400_000, 400_001)
		keepsFrom(n, 0, unknown)
		s := New(n.config())
		defer s.CloseIdle()
		r := &recorder{}
		if err := s.Fill(t.Context(), 10, hashOf("10"), 400_000, r.emit); err != nil {
			t.Error(err)
		}
		wantSlots(t, r, 11, 400_000)
	})
	bubble.Test(t, func(t *testing.T) { // and where what comes next is not kept, it is found out all the same
		n := startNode(t)
		n.add(10, 11, 99_999, 100_000, 100_001)
		keepsFrom(n, 100_000, unknown)
		s := New(n.config())
		go func() {
			time.Sleep(20 * time.Minute)
			if g := s.Upstream(); g.Gap.UpTo != 99_999 || g.Gap.Why != upstream.OutOfRange || !g.Gap.Stuck {
				t.Errorf("gap: %+v", g.Gap)
			}
			n.mu.Lock()
			n.first = 0
			n.mu.Unlock()
		}()
		wantSlots(t, follow(t, s, at(10), untilSlot(100_001)), 11, 99_999, 100_000, 100_001)
	})
}

// A list as long as it may be is within its bound, and is gone through in parts.
func TestTheLongestListIsRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		const from = 1 << 59
		list := make([]ledger.Slot, maxListed)
		for i := range list {
			list[i] = from + ledger.Slot(i)
		}
		text, err := json.MarshalIndent(list, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		answering(n, says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":%s}`, text)))
		s := New(n.config())
		defer s.CloseIdle()
		if got, err := s.client.slots(t.Context(), from, from+maxListed-1, ledger.Confirmed); err != nil || !reflect.DeepEqual(got, list) {
			t.Errorf("%d slots of %d bytes, err = %v", len(got), len(text), err)
		}
		for _, wrong := range []string{"[12,11]", "[11,11]", "[9]", "[21]", "null"} {
			answering(n, func(w http.ResponseWriter) {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, n.calledLocked(), wrong)
			})
			if got, err := s.client.slots(t.Context(), 10, 20, ledger.Confirmed); err == nil || causeOf(err) != garbage {
				t.Errorf("%s: %v, err = %v", wrong, got, err)
			}
		}
	})
}

// Nobody waits for a filling that cannot be: it names what is wrong.
func TestAFillBelowWhatTheNodeKeepsIsGivenUp(t *testing.T) {
	for name, answer := range retentions {
		for _, upTo := range []ledger.Slot{50, 400, 100_000} {
			for _, first := range []ledger.Slot{20, upTo, upTo + 1, upTo + 500_000} {
				bubble.Test(t, func(t *testing.T) {
					n := startNode(t)
					n.add(10, 11, 19, upTo, upTo+500_000, upTo+500_001)
					keepsFrom(n, first, answer)
					s := New(n.config())
					defer s.CloseIdle()
					begun := time.Now()
					r := &recorder{}
					err := s.Fill(t.Context(), 10, hashOf("10"), upTo, r.emit)
					var failure upstream.Failure
					if !errors.As(err, &failure) || failure.Kind() != upstream.OutOfRange || len(r.events) != 0 {
						t.Errorf("%s, up to %d, kept from %d: %d events, err = %v", name, upTo, first, len(r.events), err)
					}
					if took := time.Since(begun); took > time.Minute {
						t.Errorf("%s, up to %d, kept from %d: it took %v", name, upTo, first, took)
					}
				})
			}
		}
	}
}
