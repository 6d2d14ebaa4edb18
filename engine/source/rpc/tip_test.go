package rpc

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// F22: behind a balancer the node is one of two, and one of them is behind.
func TestTwoNodesBehindABalancerShowOneChain(t *testing.T) {
	for name, turn := range map[string]func(call int) bool{
		"by chance":     func(call int) bool { return uint32(call)*2654435761>>31 == 0 },
		"five in a row": func(call int) bool { return call/5%2 == 0 },
	} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			begun, k, list := time.Now(), keyOf(1), slots(10, 800)
			n.hold(k, 500, ledger.VoteProgram, nil)
			n.prepare(9, list...)
			for _, slot := range list {
				n.pay(slot, 500, k)
			}
			n.fault = func(*fakeCall) bool {
				n.confirmed = min(300+ledger.Slot(time.Since(begun)/(400*time.Millisecond)), 800)
				if turn(n.totalLocked()) {
					n.confirmed -= 50
				}
				n.finalized = n.confirmed - 32
				return false
			}
			r := follow(t, s, at(200), func(r *recorder) bool { // by chance every question for the account may meet the node that is behind, for long
				return untilSlot(400)(r) && stateAfter(r.events)[k].Known&ledger.FieldOwner != 0
			})
			wantChain(t, r)
			newest, _ := last[*ledger.Block](r)
			if late := time.Since(begun) - time.Duration(newest.Slot-300)*400*time.Millisecond; len(r.blocks()) != int(newest.Slot)-200 || late > 20*time.Second { // one is as much behind
				t.Errorf("%s: %d blocks up to slot %d, %v late", name, len(r.blocks()), newest.Slot, late)
			}
			for kind, count := range s.Upstream().Errors {
				if count > 0 && upstream.Kind(kind) != upstream.Unavailable {
					t.Errorf("%s: %d errors of kind %v", name, count, upstream.Kind(kind))
				}
			}
			ledgertest.Equal(t, stateAfter(r.events)[k].Owner, ledger.VoteProgram, "%s: the owner", name)
		})
	}
}

// A node that says it finalized what it shows as confirmed alone has taken nothing back.
func TestBlocksThatAreFinalLaterThanItIsSaidAreNotTakenBack(t *testing.T) {
	for name, answer := range map[string]answer{"null": gives("null"), "skipped": fails(-32007), "not yet": fails(-32004)} {
		play(t, Config{Parallel: 1}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(9, 10)
			n.fault = func(c *fakeCall) bool {
				n.finalized = n.confirmed
				early := c.Method == "getBlock" && c.Options.Commitment == "finalized" && c.slot(0)+32 > n.confirmed
				return early && answer(c)
			}
			go n.goOn(10, 120)
			r := follow(t, s, at(10), untilSlot(120))
			wantChain(t, r)
			ledgertest.Equal(t, len(r.blocks()), 110, "%s: blocks", name)
			final := slices.DeleteFunc(r.events, func(e ledger.Event) bool { _, ok := e.(*ledger.SlotStatus); return !ok })
			if len(final) == 0 || final[len(final)-1].(*ledger.SlotStatus).Slot < 40 {
				t.Errorf("%s: %d blocks were told to be final, block 88 is", name, len(final))
			}
			ledgertest.Equal(t, s.Upstream().Errors[upstream.Equivocation], 0, "%s: blocks that contradict others", name)
		})
	}
}

// A node that finalizes nothing is not followed for ever.
func TestANodeThatFinalizesNothingIsTold(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		f := s.newFollower(nil, nil, AccountsNone)
		f.chain = make([]ledger.BlockID, maxUnfinal)
		for range patience {
			if more, err := f.goOn(t.Context()); more || err != nil {
				t.Fatalf("more %t, err = %v", more, err)
			}
		}
		s.stats.Connected()
		if got := s.Trouble(); !strings.Contains(got, "no block can be had since") || n.calls["getBlocksWithLimit"] != 0 {
			t.Errorf("trouble %q, calls %v", got, n.calls)
		}
	})
}
