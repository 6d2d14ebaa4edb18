package rpc

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// goesOn adds a block each 400 ms to a node, until it has that of a slot.
func goesOn(n *fakeNode, from, last ledger.Slot) {
	for slot := from + 1; slot <= last && n.wait(400*time.Millisecond); slot++ {
		n.add(slot-1, slot)
	}
}

// calledLocked returns how many calls came, which is the id of the newest where they come one after the other.
func (n *fakeNode) calledLocked() (total int) {
	for _, calls := range n.calls {
		total += calls
	}
	return total
}

// tells answers getSlot at level confirmed by a number for the first so many times.
func tells(n *fakeNode, number string, times int) {
	n.fault = func(w http.ResponseWriter, method string, params []json.RawMessage) bool {
		if method != "getSlot" || !strings.Contains(string(params[0]), "confirmed") || times == 0 {
			return false
		}
		times--
		says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, n.calledLocked(), number))(w)
		return true
	}
}

func TestASlotFarTooHighIsNotBelievedForGood(t *testing.T) {
	for _, number := range []string{"1000000", "999999999999", "1152921504606846976", "18446744073709551615", "18446744073709551616", "-1", "1e3", "null", `"7"`} {
		for name, from := range map[string]*ledger.ResumePoint{"fresh": nil, "resumed": at(100)} {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t)
				n.add(9, 10)
				for slot := ledger.Slot(11); slot <= 110; slot++ {
					n.add(slot-1, slot)
				}
				tells(n, number, 1)
				go goesOn(n, 110, 200)
				c := n.config()
				c.Parallel = 1
				s := New(c)
				begun := time.Now()
				r := follow(t, s, from, untilSlot(200))
				wantChain(t, r)
				if first, late := r.blocks()[0].Slot, time.Since(begun)-36*time.Second; first > 115 || late > 2*time.Second {
					t.Errorf("%s, %s: begins with block %d, and is %v late", number, name, first, late)
				}
				g := s.Upstream()
				if g.UpstreamSlot != 200 || g.LagSlots != 0 || g.Errors[upstream.Garbage] != 1 || g.Gaps != 0 || s.Trouble() != "" {
					t.Errorf("%s, %s: figures: %+v, %q", number, name, g, s.Trouble())
				}
			})
		}
	}
}

// While a node tells of slots that it has no blocks of, health is told.
func TestANodeThatSaysItHasWhatItDoesNotListIsTold(t *testing.T) {
	for _, number := range []string{"103", "1000000"} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(99, 100)
			tells(n, number, 30)
			c := n.config()
			c.Parallel = 1
			var lines strings.Builder
			c.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			s := New(c)
			go func() {
				time.Sleep(30 * time.Second)
				if g := s.Upstream(); !strings.Contains(s.Trouble(), "no block can be had since 2000-01-01T00:00:") || g.Gaps != 0 || !g.Connected || g.Errors[upstream.Unavailable] == 0 {
					t.Errorf("%s: trouble %q, figures %+v", number, s.Trouble(), g)
				}
				n.wait(10 * time.Minute)
				goesOn(n, 100, 150)
			}()
			wantChain(t, follow(t, s, at(100), untilSlot(150)))
			if s.Trouble() != "" || s.Upstream().UpstreamSlot != 150 {
				t.Errorf("%s: after: %q, %+v", number, s.Trouble(), s.Upstream())
			}
			if log := lines.String(); !strings.Contains(log, "cannot be followed now") || !strings.Contains(log, "followed again") {
				t.Errorf("%s: the log says\n%s", number, log)
			}
			if calls := n.calls["getBlocks"]; calls > 2000 {
				t.Errorf("%s: %d lists", number, calls)
			}
		})
	}
}

// A node whose ledger began again has slots far below those held here; so has one that was restored from an old
// snapshot. It is waited for, and health is told.
func TestANodeThatIsBelowWhatIsHeldIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(9, 10, 1000, 1001)
		s := New(n.config())
		go func() {
			time.Sleep(10 * time.Second)
			n.mu.Lock()
			n.confirmed = 50
			n.mu.Unlock()
			time.Sleep(30 * time.Second)
			if got, g := s.Trouble(), s.Upstream(); !strings.Contains(got, "no block can be had since") || !strings.Contains(got, upstream.Unavailable.Reason()) || g.UpstreamSlot != 50 || g.Errors[upstream.Unavailable] == 0 {
				t.Errorf("trouble %q, figures %+v", got, g)
			}
			n.add(1001, 1002, 1003)
		}()
		wantSlots(t, follow(t, s, at(1000), untilSlot(1003)), 1001, 1002, 1003)
		if g := s.Upstream(); s.Trouble() != "" || g.UpstreamSlot != 1003 || g.LagSlots != 0 {
			t.Errorf("trouble after is %q, figures %+v", s.Trouble(), g)
		}
	})
}

// Once a ledger that began again has come past what is held here, it shows that it is another.
func TestALedgerThatBeganAgainIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(0, 1, 2, 3)
		go func() {
			time.Sleep(time.Minute)
			n.prepare(3, 10)
			n.add(10, 11)
		}()
		r := &recorder{}
		err := New(n.config()).Run(t.Context(), &ledger.ResumePoint{Slot: 10, Blockhash: hashOf("other")}, r.emit)
		if err == nil || !strings.Contains(err.Error(), upstream.ErrOtherChain.Error()) || len(r.events) != 0 {
			t.Errorf("err = %v after %d events", err, len(r.events))
		}
	})
}

func TestABeginningThatIsYetToComeIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(9, 10)
		c := n.config()
		c.From = ledger.Some(ledger.Slot(500))
		s := New(c)
		go func() {
			time.Sleep(time.Minute)
			if got := s.Trouble(); !strings.Contains(got, "no block can be had since") {
				t.Errorf("trouble %q", got)
			}
			n.add(10, 499, 501)
		}()
		wantSlots(t, follow(t, s, nil, untilSlot(501)), 501)
	})
}

// Behind a balancer the node is one of two, and one of them is behind.
func TestTwoNodesBehindABalancerShowOneChain(t *testing.T) {
	for name, turn := range map[string]func(call int) bool{
		"by chance":     func(call int) bool { return uint32(call)*2654435761>>31 == 0 },
		"three to one":  func(call int) bool { return call%4 == 0 },
		"five in a row": func(call int) bool { return call/5%2 == 0 },
	} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			k := keyOf(1)
			n.hold(k, 500, ledger.VoteProgram, nil)
			n.add(9, 10)
			tip := ledger.Slot(10)
			build := func(slot ledger.Slot) {
				n.prepare(slot-1, slot)
				n.pay(slot, 500, k)
				n.mu.Lock()
				tip = slot
				n.mu.Unlock()
			}
			for slot := ledger.Slot(11); slot <= 300; slot++ {
				build(slot)
			}
			n.fault = func(http.ResponseWriter, string, []json.RawMessage) bool {
				n.confirmed = tip
				if turn(n.calledLocked()) {
					n.confirmed -= 50
				}
				n.finalized = n.confirmed - 32
				return false
			}
			go func() {
				for slot := ledger.Slot(301); slot <= 500 && n.wait(400*time.Millisecond); slot++ {
					build(slot)
				}
			}()
			begun := time.Now()
			s := New(n.config())
			r := follow(t, s, at(200), untilSlot(500))
			wantChain(t, r)
			if late := time.Since(begun) - 80*time.Second; len(r.blocks()) != 300 || late > 20*time.Second { // as much as one of them is behind
				t.Errorf("%s: %d blocks, %v late", name, len(r.blocks()), late)
			}
			for kind, count := range s.Upstream().Errors {
				if count > 0 && upstream.Kind(kind) != upstream.Unavailable {
					t.Errorf("%s: %d errors of kind %v", name, count, upstream.Kind(kind))
				}
			}
			if a := stateAfter(r.events)[k]; a.Owner != ledger.VoteProgram {
				t.Errorf("%s: the account is %+v", name, a)
			}
		})
	}
}

func TestFailuresAreNoGap(t *testing.T) {
	tests := map[string]struct {
		method string
		answer func(w http.ResponseWriter)
	}{
		"no list":            {"getBlocks", says(500, "")},
		"a list refused":     {"getBlocks", says(200, `{"jsonrpc":"2.0","error":{"code":-32602}}`)},
		"no JSON":            {"getBlocks", says(200, "<html>")},
		"block: no answer":   {"getBlock", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		"block: limited":     {"getBlock", says(429, "", "Retry-After", "1")},
		"slot: no answer":    {"getSlot", says(502, "")},
		"everything refused": {"", says(403, "")},
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 12, 13)
			begun := time.Now()
			n.fault = func(w http.ResponseWriter, method string, _ []json.RawMessage) bool {
				if method != tt.method && tt.method != "" || time.Since(begun) > time.Minute {
					return false
				}
				tt.answer(w)
				return true
			}
			s := New(n.config())
			if tt.method != "getSlot" {
				go func() {
					time.Sleep(50 * time.Second)
					if got := s.Trouble(); !strings.Contains(got, "no block can be had since") && !strings.Contains(got, "not connected since") && !strings.Contains(got, "limits our requests") {
						t.Errorf("%s: trouble is %q", name, got)
					}
				}()
			}
			wantSlots(t, follow(t, s, at(10), untilSlot(13)), 11, 12, 13)
			if g := s.Upstream(); g.Gaps != 0 || s.Trouble() != "" {
				t.Errorf("%s: figures: %+v, %q", name, g, s.Trouble())
			}
		})
	}
}
