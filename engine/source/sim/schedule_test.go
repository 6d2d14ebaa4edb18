package sim

import (
	"math"
	"testing"

	"ledgerd/engine/ledger"
)

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
