package snapshot

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

// historyLocked returns the history of the newest snapshot that opens and whose history is whole. What this
// process has not read back yet it reads now.
func (s *Store) historyLocked(ctx context.Context, pace Pace) ([]HistoryRef, error) {
	infos, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range infos {
		snapshot, err := s.Open(i)
		if err == nil {
			err = s.verifyLocked(ctx, pace, snapshot.history...)
		}
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
	for i := 1; i < len(blocks); i++ {
		if before := blocks[i-1].Block.Slot; blocks[i].Block.Slot <= before || !blocks[i].HasPrevious || blocks[i].Previous != before {
			return nil, nil, fmt.Errorf("the blocks at slots %d and %d do not follow each other", before, blocks[i].Block.Slot)
		}
	}
	var last ledger.Slot
	if len(held) > 0 {
		last = held[len(held)-1].Last
	}
	for len(blocks) > 0 && (blocks[0].Block.Slot < floor || len(held) > 0 && blocks[0].Block.Slot <= last) {
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		b := &blocks[0]
		switch {
		case len(held) > 0 && (!b.HasPrevious || b.Previous != last):
			return nil, nil, fmt.Errorf("the blocks after slot %d are missing, the first one given is at slot %d", last, b.Block.Slot)
		case len(held) == 0 && b.HasPrevious && b.Previous >= floor:
			return nil, nil, fmt.Errorf("the blocks from slot %d on are missing, the first one given is at slot %d", floor, b.Block.Slot)
		}
		last = blocks[len(blocks)-1].Block.Slot
	}
	if len(held)+len(blocks) == 0 || last != newest.Slot {
		return nil, nil, fmt.Errorf("the history ends at slot %d, the snapshot is of the block at slot %d", last, newest.Slot)
	}
	return append([]HistoryRef(nil), held...), blocks, nil
}
