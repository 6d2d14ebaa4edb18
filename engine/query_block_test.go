package engine

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// TestBlocksAreAnsweredWithoutTheShards asks a node whose shards ended already: whatever the blocks hold, no message
// goes to a shard for each of them, nor for the proof that a slot was skipped.
func TestBlocksAreAnsweredWithoutTheShards(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 3})
		block := with(rootBlock(100), signature(1), signature(2))
		n.send(block)
		for range 500 {
			block = child(block, block.Slot+2, 0) // empty, and the slot between is skipped
			n.send(block)
		}
		block = with(child(block, block.Slot+1, 0), signature(3))
		n.send(block)
		dead := with(child(block, block.Slot+1, 1), signature(4))
		n.send(dead, child(block, block.Slot+2, 0)) // a fork: the slot of the other block is skipped now
		n.mustStop()
		got, more, _, err := n.Recent(ledger.Query{}, ledger.RecentRange{Limit: 10})
		if err != nil || more || len(got) != 3 || got[0].Signature != signature(3) || got[2].Signature != signature(1) {
			t.Errorf("Recent: %d transactions, more %v, %v; want signatures 3, 2 and 1", len(got), more, err)
		}
		got, more, _, err = n.Recent(ledger.Query{}, ledger.RecentRange{Limit: 2})
		if err != nil || !more || len(got) != 2 {
			t.Errorf("Recent of two: %d transactions, more %v, %v", len(got), more, err)
		}
		if b, _, err := n.LatestBlock(ledger.Query{}); err != nil || b.Block.Slot != block.Slot+2 {
			t.Errorf("LatestBlock: %+v, %v", b.Block, err)
		}
		for slot, want := range map[ledger.Slot]ledger.Absence{
			99: ledger.SlotNotIndexed, 501: ledger.SlotSkipped, dead.Slot: ledger.SlotSkipped, block.Slot + 3: ledger.SlotNotYetProduced,
		} {
			if _, _, err := n.Block(ledger.Query{}, slot); func() bool { why, ok := absence(err); return !ok || why.Absence != want }() {
				t.Errorf("Block of slot %d: %v, want %v", slot, err, want)
			}
		}
		if b, _, err := n.Block(ledger.Query{Commitment: ledger.Finalized}, 100); err != nil || len(b.Block.Transactions) != 2 {
			t.Errorf("the finalized root: %v", err)
		}
	})
}
