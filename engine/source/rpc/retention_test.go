package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// unkept are the codes by which nodes answer about slots that they do not keep any more: cleaned up, skipped, skipped in
// long-term storage.
var unkept = []int{-32001, -32007, -32009}

// F21, F26: what the node does not keep any more is missing, however far below it is: nothing past it is emitted, and health names
// it. When the node has its blocks again, it goes on.
func TestBlocksBelowWhatTheNodeKeepsAreMissing(t *testing.T) {
	for _, code := range unkept {
		for _, below := range []ledger.Slot{1, 1000, 2_000_000} {
			play(t, Config{Random: longest}, func(t *testing.T, n *fakeNode, s *Source) {
				first := 20 + below
				n.add(10, 11, first-1, first, first+1, first+2)
				n.first, n.unkept = first, code
				after(t, time.Minute, func() {
					g, got := s.Upstream(), s.Trouble()
					if g.Blocks != 0 || !g.Gap.Stuck || g.Gap.Why != upstream.OutOfRange || g.Gap.After != 10 ||
						!strings.Contains(got, "missing and cannot be filled: "+upstream.OutOfRange.Reason()) {
						t.Errorf("%d, %d below: %d blocks, trouble %q, gap %+v", code, below, g.Blocks, got, g.Gap)
					}
					n.locked(func() {
						if calls := n.totalLocked(); calls > 300 {
							t.Errorf("%d, %d below: %d calls in a minute: %v", code, below, calls, n.calls)
						}
						n.first = 0
					})
				})
				wantSlots(t, follow(t, s, at(10), untilSlot(first+2)), 11, first-1, first, first+1, first+2)
				if g := s.Upstream(); g.Gap.Open() || g.GapsRepaired != 1 {
					t.Errorf("%d, %d below: figures after: %+v", code, below, g)
				}
			})
		}
	}
}

// A time without blocks, however long, is no gap, and a gap is filled over one.
func TestALongTimeWithoutBlocksIsPassedOver(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 400_000, 400_001)
		wantSlots(t, follow(t, s, at(10), untilSlot(400_001)), 11, 400_000, 400_001)
		ledgertest.Equal(t, s.Upstream().Gaps, 0, "gaps")
		filled := &recorder{}
		must(t, s.Fill(t.Context(), 10, hashOf("10"), 400_000, filled.emit))
		wantSlots(t, filled, 11, 400_000)
	})
}

func TestListsThatCannotBeAreRefused(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		for _, wrong := range []string{"[12,11]", "[11,11]", "[9]", "[10,11,12]", "[1152921504606846977]", "null"} {
			n.fault = gives(wrong)
			if got, err := s.client.slots(t.Context(), 10, 2, ledger.Confirmed); err == nil || causeOf(err) != garbage {
				t.Errorf("%s: %v, err = %v", wrong, got, err)
			}
		}
	})
}

func TestFillEmitsTheGapAndWhatItTouched(t *testing.T) {
	for _, context := range []ledger.Slot{14, 20} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			list := []ledger.Slot{11, 12, 14, 15, 20}
			n.add(10, list...)
			for _, slot := range list {
				n.pay(slot, uint64(slot), keyOf(int(slot)), keyOf(99))
				n.hold(keyOf(int(slot)), uint64(slot), ledger.SystemProgram, nil)
			}
			n.hold(keyOf(99), uint64(context), ledger.VoteProgram, nil)
			n.context = context
			n.fault = on("getMultipleAccounts", times(3, says(503, "")))
			r := &recorder{}
			must(t, s.Fill(t.Context(), 10, hashOf("10"), 14, r.emit))
			wantSlots(t, r, 11, 12, 14)
			held := stateAfter(append(r.events, &ledger.Block{Slot: context}))
			for _, i := range []int{11, 12, 14, 99} {
				if a := held[keyOf(i)]; a == nil || a.Unknown() != 0 {
					t.Errorf("context %d: account %d is %+v", context, i, a)
				}
			}
			ledgertest.Equal(t, held[keyOf(99)].Lamports, ledger.Lamports(context), "context %d: lamports", context)
		})
	}
}

// F21, F26, F29: a filling ends before the first block that cannot be had.
func TestFillSaysWhatItCannotFill(t *testing.T) {
	const none = upstream.Kinds
	for name, tt := range map[string]struct {
		upTo    ledger.Slot
		hash    string
		fault   answer
		emitted []ledger.Slot
		kind    upstream.Kind
		want    string
	}{
		"pruned": {13, "10", onBlock(12, fails(-32001)), []ledger.Slot{11}, upstream.OutOfRange,
			"cannot fill slots 12 to 13: getBlock: the node does not keep it any more (-32001)"},
		"missing": {13, "10", onBlock(12, fails(-32007)), []ledger.Slot{11}, upstream.Unavailable,
			"cannot fill slots 12 to 13: getBlock: the node has no such block: skipped or missing (-32007)"},
		"no such end": {17, "10", nil, []ledger.Slot{11, 12, 13}, upstream.Unavailable,
			"cannot fill slots 14 to 17: getBlock: the node does not have it yet (-32004)"},
		"no accounts": {12, "10", on("getMultipleAccounts", says(403, "")), []ledger.Slot{11}, upstream.Refused,
			"cannot fill slot 12: it is not to be had what its accounts are: getMultipleAccounts: the node refuses the call (403)"},
		"another ledger": {13, "x", nil, nil, upstream.WrongParent,
			"cannot fill slots 11 to 13: getBlock: the block does not build on those before it: block 11, after block 10"},
		"out of order": {10, "10", nil, nil, none, "there is nothing to fill: the slots are not in order"},
	} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(9, 10, 11, 12, 13)
			n.pay(12, 7, keyOf(1))
			n.fault = tt.fault
			r := &recorder{}
			err := s.Fill(t.Context(), 10, hashOf(tt.hash), tt.upTo, r.emit)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: err = %v", name, err)
			}
			wantSlots(t, r, tt.emitted...)
			if failure, ok := errors.AsType[upstream.Failure](err); ok != (tt.kind != none) || ok && failure.Kind() != tt.kind {
				t.Errorf("%s: %v does not say of which kind it is", name, err)
			}
			if calls := n.calls["getMultipleAccounts"]; name == "no accounts" && calls < 2 || calls > fillTries+1 {
				t.Errorf("%s: %d calls", name, calls)
			}
		})
	}
}

// A node that shows another branch with each call, as several behind a balancer may, is given up like one that does not have the next block.
func TestAFillFromANodeThatAlternatesIsGivenUp(t *testing.T) {
	play(t, Config{Accounts: AccountsNone}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11, 12)
		n.blocks[12].previous = hashOf("none")
		asked := 0
		n.fault = onBlock(11, func(*fakeCall) bool {
			asked++
			n.blocks[11].hash = hashOf(fmt.Sprint("11 as of call ", asked))
			return false
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := &recorder{}
		err := s.Fill(ctx, 10, hashOf("10"), 12, r.emit)
		ledgertest.ErrorSays(t, err, "cannot fill slots 11 to 12: getBlock: ", "the node alternates")
		if asked > 3*fillTries {
			t.Errorf("block 11 was asked for %d times", asked)
		}
	})
}

// F26: nobody waits for a filling that cannot be: it names what is wrong.
func TestAFillBelowWhatTheNodeKeepsIsGivenUp(t *testing.T) {
	for _, code := range unkept {
		for upTo, first := range map[ledger.Slot]ledger.Slot{50: 20, 400: 400, 1000: 1001, 100_000: 600_000} {
			play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
				n.add(10, 11, 19, upTo, upTo+500_000, upTo+500_001)
				n.first, n.unkept = first, code
				begun := time.Now()
				r := &recorder{}
				err := s.Fill(t.Context(), 10, hashOf("10"), upTo, r.emit)
				failure, ok := errors.AsType[upstream.Failure](err)
				if took := time.Since(begun); !ok || failure.Kind() != upstream.OutOfRange || len(r.events) != 0 || took > time.Minute {
					t.Errorf("%d, up to %d, kept from %d: %d events, err = %v after %v", code, upTo, first, len(r.events), err, took)
				}
			})
		}
	}
}
