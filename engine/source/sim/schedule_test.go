package sim

import (
	"math"
	"testing"

	"ledgerd/engine/ledger"
)

func TestRatesAreHonoured(t *testing.T) {
	const slots = 20_000
	s := newSchedule(&open(t, "fork_rate=0.05,skip_rate=0.1,tps=333,votes=0.37,slot_time=7ms").params, 5)
	var skipped, branches, payments, votes int
	parent, branch := firstSlot-1, false
	leaders := make(map[uint32]int)
	for slot := firstSlot; slot <= slots; slot++ {
		leaders[s.leader(slot)]++
		if got, want := s.time(slot), genesisTime+int64(slot)*7/1000; got != want {
			t.Fatalf("slot %d: time %d, want %d", slot, got, want)
		}
		switch s.kind(slot) {
		case skippedSlot:
			skipped++
		case branchBlock:
			if !branch {
				branches++
			}
			branch = true
		case mainBlock:
			payments += int(dueBetween(s.paymentsDue, slot, parent))
			votes += int(dueBetween(s.votesDue, slot, parent))
			parent, branch = slot, false
		}
	}
	// Within five standard deviations of the binomial; slots of a branch are never skipped.
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("%s: %v in %d slots, want about %v", what, got, slots, want)
		}
	}
	near("branches", float64(branches), 0.05*slots)
	near("skipped slots", float64(skipped), 0.1*(slots-3*0.05*slots))
	for v := range uint32(5) {
		near("groups led", float64(leaders[v])/groupSlots, slots/5/groupSlots)
	}
	if due := int(parent) * 333 * 7; payments != due/1000 || votes != due*37/100_000 {
		t.Errorf("%d payments and %d votes due up to slot %d, want exactly %d and %d", payments, votes, parent, due/1000, due*37/100_000)
	}
}

func TestDueNeverOverflows(t *testing.T) {
	for _, slot := range []ledger.Slot{1, 2, 1 << 40, math.MaxInt64} {
		if got := dueBetween(maxPerSlot*million-1, slot, slot-1); got != maxPerSlot && got != maxPerSlot-1 {
			t.Errorf("slot %d: %d due, want %d or one less", slot, got, maxPerSlot)
		}
	}
}

// TestBlocksAndStatusesFollowTheChain walks through runs: parents, heights, times and signatures of blocks, and what is said
// of their slots.
func TestBlocksAndStatusesFollowTheChain(t *testing.T) {
	for _, spec := range specs {
		p := open(t, spec).params
		s := newSchedule(&p, 4)
		tip := &ledger.Block{Blockhash: genesisHash(&p)} // of the chain that stays
		blocks := map[ledger.Hash]*ledger.Block{tip.Blockhash: tip}
		newest, depth := tip, 0
		said := make(map[ledger.Status]ledger.Slot)
		signatures := make(map[ledger.Signature]bool)
		visit(t, spec, nil, func(e ledger.Event) {
			switch e := e.(type) {
			case *ledger.SlotStatus:
				b := blocks[e.Blockhash.Value]
				if b == nil || b.Slot != e.Slot || s.kind(b.Slot) != mainBlock || e.Status == ledger.StatusDead ||
					e.Slot <= said[e.Status] || e.Status == ledger.StatusFinalized && e.Slot > said[ledger.StatusConfirmed] {
					t.Fatalf("%s: %v of slot %d after %v", spec, e.Status, e.Slot, said)
				}
				said[e.Status] = e.Slot
			case *ledger.Block:
				parent := blocks[e.PreviousBlockhash.Value]
				if parent == nil || e.ParentSlot != parent.Slot || e.Height.Value != parent.Height.Value+1 || e.Slot <= newest.Slot {
					t.Fatalf("%s: slot %d does not follow %+v", spec, e.Slot, parent)
				}
				want, n := genesisTime+int64(e.Slot)*400/1000, len(e.Transactions)
				if e.Time != ledger.Some(want) || uint64(n) != e.TransactionCount {
					t.Fatalf("%s: slot %d: time %v, want %d; %d of %d transactions", spec, e.Slot, e.Time, want, n, e.TransactionCount)
				}
				if depth++; s.kind(e.Slot) == mainBlock {
					if depth = 0; parent != tip {
						t.Fatalf("%s: slot %d builds on slot %d, want %d", spec, e.Slot, parent.Slot, tip.Slot)
					}
					tip = e
				}
				if depth > 3 || depth > 0 && e.Slot < groupSlots {
					t.Fatalf("%s: slot %d is block %d of its branch", spec, e.Slot, depth)
				}
				for i, tx := range e.Transactions {
					if signatures[tx.Signature] || tx.Slot != e.Slot || tx.Index != uint32(i) || tx.Time != e.Time {
						t.Fatalf("%s: slot %d: %+v repeats a signature, or is not stamped as its block", spec, e.Slot, tx)
					}
					signatures[tx.Signature] = true
				}
				newest, blocks[e.Blockhash] = e, e
			}
		})
		if after := uint64(newest.Slot - said[ledger.StatusFinalized]); after < p.finality || after > p.finality+10 {
			t.Errorf("%s: the newest block comes %d slots after the finalized one, want about %d", spec, after, p.finality)
		}
	}
}
