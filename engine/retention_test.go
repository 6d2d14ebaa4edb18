package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestEventsThatLeadToNothingPruneNothing restarts a node with less retention behind a snapshot
// that no record follows: until a head with a new floor is shown, no block below it may go.
func TestEventsThatLeadToNothingPruneNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, root := diskNode(t, disk, Config{})
		blocks := chainOf(root, 30)
		for _, b := range blocks {
			n.send(with(b, signature(int(b.Slot))), status(b, ledger.StatusFinalized))
		}
		n.send(&ledger.BaseState{Slot: 130, Accounts: []ledger.AccountWrite{lamports(key(7), 7)}})
		n.mustStop()
		n.config.Dir.Close()
		n = startNode(t, live(), onDisk(t, disk, Config{Shards: 2, Retention: sequencer.Retention{Slots: 5, Bytes: 1 << 40}}))
		synctest.Wait()
		n.send(blocks[29]) // shown again: it leads to nothing
		time.Sleep(2 * foldAfter)
		synctest.Wait()
		for slot := n.Head().Floor; slot <= 130; slot++ {
			if _, _, err := n.Block(ledger.Query{}, slot); err != nil {
				why, _ := absence(err)
				t.Errorf("slot %d, floor %d: %v (pruned is %v)", slot, n.Head().Floor, why.Absence, ledger.SlotPruned)
			}
		}
	})
}
