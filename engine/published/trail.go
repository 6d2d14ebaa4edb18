package published

import (
	"slices"

	"ledgerd/engine/ledger"
)

// Trail computes the tips of all commitment levels from the records after a final block, or from record 1 on.
type Trail struct {
	blocks []ledger.Tip // of the chain, from the newest final one on, as far as they were read
	levels [ledger.Commitments]ledger.Tip
}

// After returns the head after more records.
func (t *Trail) After(records []*ledger.Record) *ledger.Head {
	for _, r := range records {
		if r.Version <= t.levels[ledger.Processed].Version {
			continue // the commit began before the starting point
		}
		switch r.Kind {
		case ledger.BlockRecord:
			t.blocks = append(t.blocks, ledger.Tip{Version: r.Version, Slot: r.Slot, Hash: r.Hash, Seq: r.LastSeq(), Time: r.Time})
		case ledger.RollbackRecord:
			t.rollBack(r)
		case ledger.StatusRecord:
			t.status(r)
		}
		if n := len(t.blocks); n > 0 {
			t.levels[ledger.Processed] = t.blocks[n-1]
		}
		t.levels[ledger.Processed].Version, t.levels[ledger.Processed].Seq = r.Version, r.LastSeq()
	}
	return &ledger.Head{Tips: t.levels, HasBlock: true}
}

// rollBack removes the blocks above the slot of a rollback from the chain.
func (t *Trail) rollBack(r *ledger.Record) {
	t.blocks = slices.DeleteFunc(t.blocks, func(b ledger.Tip) bool { return b.Slot > r.Slot })
	if n := len(t.blocks); n > 0 && t.levels[ledger.Confirmed].Slot > r.Slot {
		t.levels[ledger.Confirmed] = t.blocks[n-1]
		t.levels[ledger.Confirmed].Version, t.levels[ledger.Confirmed].Seq = r.Version, r.LastSeq()
	}
}

// status raises a level to the block of a status record if it is below that.
func (t *Trail) status(r *ledger.Record) {
	i := slices.IndexFunc(t.blocks, func(b ledger.Tip) bool { return b.Slot == r.Slot && b.Hash == r.Hash })
	switch {
	case i < 0:
	case r.Status == ledger.StatusFinalized:
		t.raise(ledger.Finalized, t.blocks[i])
		t.blocks = t.blocks[i:]
	case r.Status == ledger.StatusConfirmed:
		t.raise(ledger.Confirmed, t.blocks[i])
	}
}

// raise raises a level to a block, and all levels under it that are lower.
func (t *Trail) raise(level ledger.Commitment, to ledger.Tip) {
	for ; level > ledger.Processed; level-- {
		if t.levels[level].Slot < to.Slot {
			t.levels[level] = to
		}
	}
}
