package rpc

import (
	"context"
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
			n.add(9, list...)
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
			var events []ledger.Event
			newest := ledger.BlockID{Slot: 200, Hash: hashOf("200")}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			err := s.Run(ctx, resumePoint("200"), func(ctx context.Context, e ledger.Event) error {
				events = append(events, e)
				if b, ok := e.(*ledger.Block); ok {
					if b.Slot != newest.Slot+1 || b.PreviousBlockhash != ledger.Some(newest.Hash) {
						t.Errorf("%s: block %d comes after block %d", name, b.Slot, newest.Slot)
					}
					newest = ledger.BlockID{Slot: b.Slot, Hash: b.Blockhash}
				}
				// By chance every question for the account may meet the node that is behind, for long.
				if newest.Slot >= 400 && stateAfter(events)[k].Known&ledger.FieldOwner != 0 {
					cancel()
				}
				return ctx.Err()
			})
			late := time.Since(begun) - time.Duration(newest.Slot-300)*400*time.Millisecond
			if err != context.Canceled || late > 20*time.Second { // one is as much behind
				t.Errorf("%s: slot %d, %v late, err = %v", name, newest.Slot, late, err)
			}
			for kind, count := range s.Upstream().Errors {
				if count > 0 && upstream.Kind(kind) != upstream.Unavailable {
					t.Errorf("%s: %d errors of kind %v", name, count, upstream.Kind(kind))
				}
			}
			ledgertest.Equal(t, stateAfter(events)[k].Owner, ledger.VoteProgram, "%s: the owner", name)
		})
	}
}
