package rpc

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// tells answers getSlot at level confirmed by a number for the first so many times.
func tells(number string, calls int) answer {
	told := times(calls, gives(number))
	return on("getSlot", func(c *fakeCall) bool { return c.Options.Commitment == "confirmed" && told(c) })
}

// F27: a slot that cannot be is no reason to stop.
func TestASlotFarTooHighIsNotBelievedForGood(t *testing.T) {
	for _, number := range []string{"1000000", "1152921504606846976", "18446744073709551615", "-1", "null"} {
		for name, from := range map[string]*ledger.ResumePoint{"fresh": nil, "resumed": at(100)} {
			play(t, Config{Parallel: 1}, func(t *testing.T, n *fakeNode, s *Source) {
				n.add(9, slots(10, 110)...)
				n.fault = tells(number, 1)
				begun := time.Now()
				after(t, time.Second, func() { n.goOn(110, 150) }) // until then it is asked for its newest slot
				r := follow(t, s, from, untilSlot(150))
				wantChain(t, r)
				if first, late := r.blocks()[0].Slot, time.Since(begun)-17*time.Second; first > 115 || late > 2*time.Second {
					t.Errorf("%s, %s: begins with block %d, and is %v late", number, name, first, late)
				}
				g := s.Upstream()
				if g.UpstreamSlot != 150 || g.LagSlots != 0 || g.Errors[upstream.Garbage] != 1 || g.Gaps != 0 || s.Trouble() != "" {
					t.Errorf("%s, %s: figures: %+v, %q", number, name, g, s.Trouble())
				}
			})
		}
	}
}

// While a node tells of slots that it has no blocks of, health is told.
func TestANodeThatSaysItHasWhatItDoesNotListIsTold(t *testing.T) {
	for _, number := range []string{"103", "1000000"} {
		var lines strings.Builder
		c := Config{Parallel: 1, Random: longest, Logger: slog.New(slog.NewTextHandler(&lines, nil))}
		play(t, c, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(99, 100)
			n.fault = tells(number, 30)
			after(t, 30*time.Second, func() {
				g, got := s.Upstream(), s.Trouble()
				if !strings.Contains(got, "no block can be had since 2000-01-01T00:00:") || g.Gaps != 0 || !g.Connected ||
					g.Errors[upstream.Unavailable] == 0 {
					t.Errorf("%s: trouble %q, figures %+v", number, got, g)
				}
			})
			after(t, 10*time.Minute, func() { n.goOn(100, 150) })
			wantChain(t, follow(t, s, at(100), untilSlot(150)))
			ledgertest.Equal(t, s.Trouble(), "", "%s: trouble after", number)
			ledgertest.Equal(t, s.Upstream().UpstreamSlot, 150, "%s: the slot of the node", number)
			if log := lines.String(); !strings.Contains(log, "cannot be followed now") || !strings.Contains(log, "followed again") {
				t.Errorf("%s: the log says\n%s", number, log)
			}
			if calls := n.calls["getBlocksWithLimit"]; calls > 2000 {
				t.Errorf("%s: %d lists", number, calls)
			}
		})
	}
}

// A node whose ledger began again has slots far below those held here; so has one that was restored from an old
// snapshot. It is waited for, and health is told.
func TestANodeThatIsBelowWhatIsHeldIsTold(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(9, 10, 1000, 1001)
		after(t, 10*time.Second, func() { n.locked(func() { n.confirmed = 50 }) })
		after(t, 40*time.Second, func() {
			got, g := s.Trouble(), s.Upstream()
			if !strings.Contains(got, "no block can be had since") || !strings.Contains(got, upstream.Unavailable.Reason()) ||
				g.UpstreamSlot != 50 || g.Errors[upstream.Unavailable] == 0 {
				t.Errorf("trouble %q, figures %+v", got, g)
			}
			n.add(1001, 1002, 1003)
		})
		wantSlots(t, follow(t, s, at(1000), untilSlot(1003)), 1001, 1002, 1003)
		if g := s.Upstream(); s.Trouble() != "" || g.UpstreamSlot != 1003 || g.LagSlots != 0 {
			t.Errorf("trouble after is %q, figures %+v", s.Trouble(), g)
		}
	})
}

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

func TestFinalityIsToldByHash(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 12, 13, 14, 15)
		n.finalized = 11
		n.fault = on("getSlot", func(c *fakeCall) bool {
			if c.Options.Commitment == "finalized" {
				n.finalized++
			}
			return false
		})
		var statuses []ledger.SlotStatus
		follow(t, s, at(10), func(r *recorder) bool {
			if s, ok := last[*ledger.SlotStatus](r); ok {
				statuses = append(statuses, *s)
			}
			return len(statuses) > 0 && statuses[len(statuses)-1].Slot == 14
		})
		for i, s := range statuses {
			want := ledger.SlotStatus{Slot: s.Slot, Status: ledger.StatusFinalized}
			want.Blockhash = ledger.Some(hashOf(fmt.Sprint(s.Slot)))
			if s != want || i > 0 && s.Slot <= statuses[i-1].Slot {
				t.Errorf("status %d is %+v", i, s)
			}
		}
	})
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
