package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

func at(slot ledger.Slot) *ledger.ResumePoint {
	return &ledger.ResumePoint{Slot: slot, Blockhash: hashOf(fmt.Sprint(slot))}
}

func wantSlots(t *testing.T, r *recorder, want ...ledger.Slot) {
	t.Helper()
	if got := r.slots(); !reflect.DeepEqual(got, want) {
		t.Errorf("blocks %v came, want %v", got, want)
	}
}

// wantChain fails unless each block builds on the one before.
func wantChain(t *testing.T, r *recorder) {
	t.Helper()
	blocks := r.blocks()
	for i, b := range blocks[1:] {
		if b.ParentSlot != blocks[i].Slot || b.PreviousBlockhash.Value != blocks[i].Blockhash {
			t.Errorf("block %d builds on %d, came after %d", b.Slot, b.ParentSlot, blocks[i].Slot)
		}
	}
}

func TestFollowsTheChainFromWhereItIsHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12, 15, 16, 20)
		s := New(n.config())
		go func() {
			time.Sleep(3 * time.Second)
			n.add(20, 21, 25)
		}()
		r := follow(t, s, at(10), untilSlot(25))
		wantSlots(t, r, 11, 12, 15, 16, 20, 21, 25)
		wantChain(t, r)
		for _, b := range r.blocks() {
			if b.Status != ledger.Confirmed {
				t.Errorf("block %d comes as %v", b.Slot, b.Status)
			}
		}
		if g := s.Upstream(); g.Gaps != 0 || g.SealedSlot != 25 || g.Blocks != 7 || !g.Connected || s.Trouble() != "" {
			t.Errorf("figures: %+v, %q", g, s.Trouble())
		}
	})
}

func TestWhereAFreshNodeBegins(t *testing.T) {
	tests := map[string]struct {
		from ledger.Opt[ledger.Slot]
		want []ledger.Slot
	}{
		"newest": {want: []ledger.Slot{120, 121}},
		"slot 0": {ledger.Some(ledger.Slot(0)), []ledger.Slot{5, 6, 7, 100, 120, 121}},
		"slot 6": {ledger.Some(ledger.Slot(6)), []ledger.Slot{6, 7, 100, 120, 121}},
		"slot 8": {ledger.Some(ledger.Slot(8)), []ledger.Slot{100, 120, 121}},
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(4, 5, 6, 7, 100, 120)
			go func() {
				time.Sleep(5 * time.Second)
				n.add(120, 121)
			}()
			c := n.config()
			c.From = tt.from
			r := follow(t, New(c), nil, untilSlot(121))
			if got := r.slots(); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s: blocks %v came, want %v", name, got, tt.want)
			}
		})
	}
}

// blockFault answers getBlock of one slot by a function, while it returns true.
func blockFault(n *fakeNode, slot ledger.Slot, answer func(w http.ResponseWriter) bool) {
	n.fault = func(w http.ResponseWriter, method string, params []json.RawMessage) bool {
		return method == "getBlock" && string(params[0]) == fmt.Sprint(slot) && answer(w)
	}
}

// fails returns an answer with an error code for so long.
func fails(code int, d time.Duration) func(w http.ResponseWriter) bool {
	begun := time.Now()
	return func(w http.ResponseWriter) bool {
		if time.Since(begun) >= d {
			return false
		}
		says(200, fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":%d}}`, code))(w)
		return true
	}
}

// A slot that cannot be had is skipped only where the next block's parent link says so.
func TestMissingBlocksAreNotTakenForSkipped(t *testing.T) {
	codes := map[string]int{"skipped": -32007, "skipped long-term": -32009, "not yet": -32004, "cleaned up": -32001, "unhealthy": -32005, "failed": -32000}
	for name, code := range codes {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 12, 13, 14)
			begun := time.Now()
			blockFault(n, 12, fails(code, 30*time.Second))
			c := n.config()
			c.Random = func(n int64) int64 { return n - 1 } // the longest pauses
			s := New(c)
			go func() {
				time.Sleep(20 * time.Second)
				if g := s.Upstream(); g.SealedSlot != 11 || !g.Gap.Open() || g.Gap.After != 11 || g.Gap.UpTo != 12 || !g.Gap.Stuck || s.Trouble() == "" {
					t.Errorf("%s: figures while it is missing: %+v, %q", name, g, s.Trouble())
				}
			}()
			r := follow(t, s, at(10), untilSlot(14))
			wantSlots(t, r, 11, 12, 13, 14)
			if took := time.Since(begun); took < 30*time.Second || took > 41*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			if g := s.Upstream(); g.Gaps != 1 || g.GapsRepaired != 1 || g.Gap.Open() {
				t.Errorf("%s: figures after: %+v", name, g)
			}
			if calls := n.calls["getBlock"]; calls > 40 {
				t.Errorf("%s: %d calls", name, calls)
			}
		})
	}
}

// A node that keeps no blocks cannot be followed: health is told, and it is not hammered.
func TestANodeThatListsNothingIsTold(t *testing.T) {
	tests := map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"no history": {says(200, `{"jsonrpc":"2.0","error":{"code":-32011}}`), "the node refused access"},
		"no access":  {says(403, ""), "the node refused access"},
		"garbage":    {says(200, "<html>"), "what the node sent could not be understood"},
		"limited":    {says(429, ""), "the node limits our requests"},
		"told when":  {says(429, "", "Retry-After", "7"), "the node limits our requests, asked to wait 7 s"},
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 12)
			begun := time.Now()
			n.fault = func(w http.ResponseWriter, _ string, _ []json.RawMessage) bool {
				if time.Since(begun) > time.Minute {
					return false
				}
				tt.answer(w)
				return true
			}
			c := n.config()
			c.Random = func(n int64) int64 { return n - 1 }
			var lines strings.Builder
			c.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			s := New(c)
			go func() {
				time.Sleep(50 * time.Second)
				if got := s.Trouble(); !strings.Contains(got, tt.want) {
					t.Errorf("%s: trouble is %q", name, got)
				}
			}()
			r := follow(t, s, at(10), untilSlot(12))
			wantSlots(t, r, 11, 12)
			if got := s.Trouble(); got != "" || n.calls["getBlocks"] > 40 {
				t.Errorf("%s: trouble after is %q; %d calls", name, got, n.calls["getBlocks"])
			}
			if log := lines.String(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "cannot be followed now") || !strings.Contains(log, "followed again") || strings.Contains(log, "secret") {
				t.Errorf("%s: the log says\n%s", name, log)
			}
		})
	}
}

// The list of slots is a hint: it may hold slots that were skipped, and leave blocks out.
func TestAWrongListIsNoGap(t *testing.T) {
	for _, list := range []string{"[11,12,13,14,15]", "[15]"} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 14, 15)
			n.fault = func(w http.ResponseWriter, method string, params []json.RawMessage) bool {
				if method != "getBlocks" || string(params[0]) != "11" {
					return false
				}
				says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, n.calledLocked(), list))(w)
				return true
			}
			s := New(n.config())
			r := follow(t, s, at(10), untilSlot(15))
			wantSlots(t, r, 11, 14, 15)
			wantChain(t, r)
			if g := s.Upstream(); g.Gaps != 0 {
				t.Errorf("%s: figures: %+v", list, g)
			}
		})
	}
}

// At the tip a node lists what it cannot answer for a moment, and a balancer may ask one that is behind twice.
func TestABlockThatIsNotThereYetIsNoGap(t *testing.T) {
	for d, errors := range map[time.Duration]uint64{150 * time.Millisecond: 1, 500 * time.Millisecond: 3} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 12)
			blockFault(n, 12, fails(-32004, d))
			s := New(n.config())
			r := follow(t, s, at(10), untilSlot(12))
			wantSlots(t, r, 11, 12)
			if g := s.Upstream(); g.Gaps != 0 || g.Errors[upstream.Unavailable] != errors {
				t.Errorf("for %v: figures: %+v", d, g)
			}
		})
	}
}

// wrongOnce answers getBlock of a slot once with another block.
func wrongOnce(n *fakeNode, slot ledger.Slot, wrong fakeBlock) {
	done := false
	blockFault(n, slot, func(w http.ResponseWriter) bool {
		if done {
			return false
		}
		done = true
		says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, n.calledLocked(), wrong.json()))(w)
		return true
	})
}

func TestABlockWithAWrongParentIsAskedForAgain(t *testing.T) {
	tests := map[string]fakeBlock{
		"another hash":  {slot: 12, parent: 11, hash: hashOf("12"), previous: hashOf("x")},
		"another slot":  {slot: 12, parent: 10, hash: hashOf("12"), previous: hashOf("10")},
		"an early slot": {slot: 12, parent: 3, hash: hashOf("12"), previous: hashOf("3")},
	}
	for name, wrong := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 12, 13)
			c := n.config()
			c.Parallel = 1 // calls come one after the other
			wrongOnce(n, 12, wrong)
			s := New(c)
			r := follow(t, s, at(10), untilSlot(13))
			wantSlots(t, r, 11, 12, 13)
			wantChain(t, r)
			if g := s.Upstream(); g.Errors[upstream.WrongParent] != 1 || g.Errors[upstream.Equivocation] != 0 {
				t.Errorf("%s: figures: %+v", name, g.Errors)
			}
		})
	}
}

// A block that the node showed and then replaced is taken back: the other one comes as a fork.
func TestAReplacedBlockIsTakenBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12, 13, 14)
		c := n.config()
		c.Parallel = 1
		wrongOnce(n, 12, fakeBlock{slot: 12, parent: 11, hash: hashOf("twin"), previous: hashOf("11")})
		s := New(c)
		r := follow(t, s, at(10), untilSlot(14))
		wantSlots(t, r, 11, 12, 12, 13, 14)
		if blocks := r.blocks(); blocks[1].Blockhash != hashOf("twin") || blocks[2].Blockhash != hashOf("12") {
			t.Errorf("the twins came as %v and %v", blocks[1].Blockhash, blocks[2].Blockhash)
		}
		if g := s.Upstream(); g.Errors[upstream.Equivocation] != 1 {
			t.Errorf("figures: %+v", g.Errors)
		}
	})
}

// Behind a balancer the node may be replaced by one on another branch.
func TestGoesBackToWhereTheNodeAgrees(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12, 13)
		s := New(n.config())
		go func() {
			time.Sleep(3 * time.Second)
			n.mu.Lock()
			delete(n.blocks, 12)
			delete(n.blocks, 13)
			n.mu.Unlock()
			n.add(11, 14, 15)
		}()
		r := follow(t, s, at(10), untilSlot(15))
		wantSlots(t, r, 11, 12, 13, 14, 15)
		if last := r.blocks()[3]; last.ParentSlot != 11 {
			t.Errorf("block 14 builds on %d", last.ParentSlot)
		}
	})
}

func TestAnotherLedgerIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12)
		r := &recorder{}
		err := New(n.config()).Run(t.Context(), &ledger.ResumePoint{Slot: 10, Blockhash: hashOf("other")}, r.emit)
		if err == nil || !strings.Contains(err.Error(), "is final here: the node's chain does not hold it: it shows another ledger, or a fork below finality") || len(r.events) != 0 {
			t.Errorf("err = %v after %d events", err, len(r.events))
		}
	})
}

// A node that names another hash with each call proves nothing: it is asked on, and health is told.
func TestANodeThatContradictsItselfIsNoOtherLedger(t *testing.T) {
	for name, from := range map[string]*ledger.ResumePoint{"fresh": nil, "resumed": at(10)} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(9, 10, 11)
			n.fault = func(_ http.ResponseWriter, method string, _ []json.RawMessage) bool {
				if method == "getBlock" {
					for _, b := range n.blocks {
						b.hash, b.previous = hashOf(fmt.Sprint(n.calls)), hashOf(fmt.Sprint("before", n.calls))
					}
				}
				return false
			}
			go goesOn(n, 11, 200)
			s := New(n.config())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.Run(ctx, from, (&recorder{}).emit); err != context.DeadlineExceeded {
				t.Errorf("%s: Run: err = %v", name, err)
			}
			if got := s.Trouble(); !strings.Contains(got, upstream.WrongParent.Reason()) || !strings.Contains(got, "slots ahead") {
				t.Errorf("%s: trouble is %q", name, got)
			}
		})
	}
}

func TestFinalityIsToldByHash(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12, 13, 14, 15)
		n.finalized = 12
		var statuses []ledger.SlotStatus
		follow(t, New(n.config()), at(10), func(r *recorder) bool {
			if s, ok := r.events[len(r.events)-1].(*ledger.SlotStatus); ok {
				statuses = append(statuses, *s)
				go func() { // emit is called under no lock of the node
					n.mu.Lock()
					n.finalized++
					n.mu.Unlock()
				}()
			}
			return len(statuses) > 0 && statuses[len(statuses)-1].Slot == 14
		})
		for i, s := range statuses {
			slot := s.Slot
			if i > 0 && slot <= statuses[i-1].Slot || s.Status != ledger.StatusFinalized || s.Blockhash != ledger.Some(hashOf(fmt.Sprint(slot))) {
				t.Errorf("status %d is %+v", i, s)
			}
		}
	})
}

func TestWhatTheNodeFinalizedOtherwiseIsTakenBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12)
		c := n.config()
		c.Parallel = 1
		wrongOnce(n, 12, fakeBlock{slot: 12, parent: 11, hash: hashOf("twin"), previous: hashOf("11")})
		n.finalized = 12
		r := follow(t, New(c), at(10), func(r *recorder) bool {
			s, ok := r.events[len(r.events)-1].(*ledger.SlotStatus)
			if ok && s.Blockhash.Value == hashOf("twin") {
				t.Error("the twin is called final")
			}
			return ok && s.Slot == 12
		})
		wantSlots(t, r, 11, 12, 12)
	})
}

func TestPollsPolitely(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11)
		s := New(n.config())
		go func() {
			time.Sleep(time.Minute)
			n.add(11, 12)
		}()
		follow(t, s, at(10), untilSlot(12))
		// A minute of looking each 400 ms, and for finality and the head each 1 and 2 s.
		if lists, slots := n.calls["getBlocks"], n.calls["getSlot"]; lists > 152 || slots > 93 || lists < 140 {
			t.Errorf("%d getBlocks, %d getSlot in a minute", lists, slots)
		}
	})
}
