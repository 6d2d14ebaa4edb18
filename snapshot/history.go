package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

// historyLocked returns the history that the next snapshot continues: that of the newest snapshot that opens and whose newest
// history file is whole. It reads back the files that this process has not read back yet.
func (s *Store) historyLocked(ctx context.Context, pace Pace) ([]HistoryRef, error) {
	infos, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range infos {
		snapshot, err := s.salvageLocked(ctx, i, pace)
		if errors.Is(err, ErrDamaged) {
			s.log.Warn("history is written again: a snapshot that has it is damaged", "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		return snapshot.meta.History, nil
	}
	return nil, nil
}

// continueHistory returns what of the history held a snapshot with the given retention floor
// and newest block refers to, and which of the blocks must be added to it. It is an error if
// the two do not make one chain from the floor to the newest block.
func continueHistory(held []HistoryRef, floor ledger.Slot, newest *ledger.Block, blocks []HeldBlock) ([]HistoryRef, []HeldBlock, error) {
	for len(held) > 0 && held[0].Last < floor {
		held = held[1:]
	}
	from, begun := floor, len(held) > 0 // from: the first slot that the history does not reach
	if begun {
		from = held[len(held)-1].Last + 1
	}
	for len(blocks) > 0 && blocks[0].Block.Slot < from {
		blocks = blocks[1:]
	}
	for i := range blocks {
		b := &blocks[i]
		if begun && (b.Previous != ledger.Some(from-1) || b.Block.Slot < from) || !begun && b.Previous.Known && b.Previous.Value >= from {
			return nil, nil, fmt.Errorf("the blocks from slot %d on are missing before the one at slot %d", from, b.Block.Slot)
		}
		from, begun = b.Block.Slot+1, true
	}
	if !begun || from != newest.Slot+1 {
		return nil, nil, fmt.Errorf("the history ends before slot %d, the snapshot is of the block at slot %d", from, newest.Slot)
	}
	return slices.Clone(held), blocks, nil
}
