package sim

import (
	"math"
	"testing"

	"ledgerd/engine/ledger"
)

func TestRatesAreHonoured(t *testing.T) {
	const slots = 20_000
	p, err := parseParams("fork_rate=0.05,skip_rate=0.1,tps=333,votes=0.37,slot_time=7ms")
	if err != nil {
		t.Fatal(err)
	}
	s := newSchedule(&p, 5)
	var skipped, branches, payments, votes int
	parent, branch := firstSlot-1, false
	leaders := make(map[uint32]int)
	for slot := firstSlot; slot <= slots; slot++ {
		leaders[s.leader(slot)]++
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
	if want := int(uint64(parent) * 333 * 7 / 1000); payments != want {
		t.Errorf("%d payments due up to slot %d, want exactly %d", payments, parent, want)
	}
	if want := int(uint64(parent) * 333 * 7 * 37 / 100_000); votes != want {
		t.Errorf("%d votes due up to slot %d, want exactly %d", votes, parent, want)
	}
}

func TestDueNeverOverflows(t *testing.T) {
	const rate = maxPerSlot * million
	for _, slot := range []ledger.Slot{1, 2, 1 << 40, math.MaxInt64} {
		if got := dueBetween(rate-1, slot, slot-1); got != maxPerSlot && got != maxPerSlot-1 {
			t.Errorf("slot %d: %d due, want %d or one less", slot, got, maxPerSlot)
		}
	}
}

func TestForksAreShortAndEndInAWinner(t *testing.T) {
	for _, spec := range specs {
		p := open(t, spec).params
		s := newSchedule(&p, 4)
		depth := 0
		for slot := firstSlot; slot < 4000; slot++ {
			switch kind := s.kind(slot); {
			case kind == branchBlock:
				if depth++; depth > 3 || slot < groupSlots {
					t.Fatalf("%s: slot %d is block %d of its branch", spec, slot, depth)
				}
			case depth > 0 && kind != mainBlock:
				t.Fatalf("%s: slot %d does not end the branch", spec, slot)
			default:
				depth = 0
			}
		}
	}
}

func TestParentLinksHeightsAndTimes(t *testing.T) {
	for _, spec := range specs {
		p := open(t, spec).params
		s := newSchedule(&p, 4)
		blocks := make(map[ledger.Hash]*ledger.Block)
		tip := &ledger.Block{Blockhash: genesisHash(&p)} // of the chain that stays
		var newest ledger.Slot
		signatures := make(map[ledger.Signature]bool)
		for _, e := range run(t, spec, nil) {
			b, ok := e.(*ledger.Block)
			if !ok {
				continue
			}
			parent := blocks[b.PreviousBlockhash.Value]
			if b.Slot == firstSlot {
				parent = tip
			}
			if parent == nil || b.ParentSlot != parent.Slot || b.Height.Value != parent.Height.Value+1 || b.Slot <= newest {
				t.Fatalf("%s: slot %d does not follow %+v", spec, b.Slot, parent)
			}
			if want := genesisTime + int64(b.Slot)*400/1000; b.Time != ledger.Some(want) {
				t.Fatalf("%s: slot %d: time %v, want %d", spec, b.Slot, b.Time, want)
			}
			if s.kind(b.Slot) == mainBlock {
				if parent != tip {
					t.Fatalf("%s: slot %d builds on slot %d, want %d", spec, b.Slot, parent.Slot, tip.Slot)
				}
				tip = b
			}
			if uint64(len(b.Transactions)) != b.TransactionCount {
				t.Fatalf("%s: slot %d: %d of %d transactions", spec, b.Slot, len(b.Transactions), b.TransactionCount)
			}
			for i := range b.Transactions {
				if signatures[b.Transactions[i].Signature] {
					t.Fatalf("%s: slot %d repeats a signature", spec, b.Slot)
				}
				signatures[b.Transactions[i].Signature] = true
			}
			newest, blocks[b.Blockhash] = b.Slot, b
		}
	}
}

func TestStatusesFollowTheChainThatStays(t *testing.T) {
	for _, spec := range specs {
		p := open(t, spec).params
		s := newSchedule(&p, 4)
		var newest, confirmed, finalized ledger.Slot
		hashes := make(map[ledger.Slot]ledger.Hash)
		for _, e := range run(t, spec, nil) {
			switch e := e.(type) {
			case *ledger.Block:
				newest, hashes[e.Slot] = e.Slot, e.Blockhash
			case *ledger.SlotStatus:
				if s.kind(e.Slot) != mainBlock || e.Blockhash != ledger.Some(hashes[e.Slot]) {
					t.Fatalf("%s: %v of slot %d, which is not on the chain", spec, e.Status, e.Slot)
				}
				switch {
				case e.Status == ledger.StatusConfirmed && e.Slot > confirmed:
					confirmed = e.Slot
				case e.Status == ledger.StatusFinalized && e.Slot > finalized && e.Slot <= confirmed:
					finalized = e.Slot
				default:
					t.Fatalf("%s: %v of slot %d after %d and %d", spec, e.Status, e.Slot, confirmed, finalized)
				}
			}
		}
		if behind := uint64(newest - finalized); behind < p.finality || behind > p.finality+10 {
			t.Errorf("%s: finalized is %d slots behind, want about %d", spec, behind, p.finality)
		}
	}
}
