package published

import (
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// TestATipIsAsOldAsItsBlock publishes a head each second: blocks by their slots, which are their hashes too, and the tips by commitment.
func TestATipIsAsOldAsItsBlock(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		board := NewBoard(nil)
		for i, step := range []struct {
			what   string
			blocks []byte
			tips   [ledger.Commitments]byte // processed, confirmed, finalized
			ages   [ledger.Commitments]int  // in seconds
		}{
			{"what was recovered", nil, [3]byte{5, 4, 3}, [3]int{0, 0, 0}},
			{"a block", []byte{6}, [3]byte{6, 4, 3}, [3]int{0, 1, 1}},
			{"a status alone", nil, [3]byte{6, 5, 3}, [3]int{1, 2, 2}},
			{"a block reaches a level", nil, [3]byte{6, 6, 5}, [3]int{2, 2, 3}},
			{"two blocks at once, one of them confirmed", []byte{7, 8}, [3]byte{8, 7, 6}, [3]int{0, 0, 3}},
			{"a fork", []byte{9}, [3]byte{9, 7, 6}, [3]int{0, 1, 4}},
			{"the fork is dead", nil, [3]byte{8, 8, 6}, [3]int{2, 2, 5}},
			{"all is finalized", nil, [3]byte{8, 8, 8}, [3]int{3, 3, 3}},
			{"nothing is new", nil, [3]byte{8, 8, 8}, [3]int{4, 4, 4}},
		} {
			if i > 0 {
				time.Sleep(time.Second)
			}
			head := &ledger.Head{HasBlock: true}
			for c, slot := range step.tips {
				head.Tips[c] = ledger.Tip{Slot: ledger.Slot(slot), Hash: ledger.Hash{slot}}
			}
			p := &ledger.Publication{Head: head}
			for _, slot := range step.blocks {
				p.Records = append(p.Records, &ledger.Record{Kind: ledger.BlockRecord, Slot: ledger.Slot(slot), Hash: ledger.Hash{slot}})
			}
			board.Publish(p)
			var ages [ledger.Commitments]int
			for c := range ages {
				ages[c] = int(time.Since(board.Head().Since[c]).Seconds())
			}
			ledgertest.Equal(t, ages, step.ages, "%s: the ages of the tips", step.what)
		}
		ledgertest.Equal(t, len(board.blocks), 2, "blocks whose time is kept: the finalized one, and the dead one above it")
	})
}
