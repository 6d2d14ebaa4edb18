package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestEventsThatLeadToNothingPruneNothing restarts a node with less retention behind a snapshot
// that no record follows: until a head with a new floor is shown, no block below it may go.
func TestEventsThatLeadToNothingPruneNothing(t *testing.T) {
	diskTest(t, Config{}, func(t *testing.T, disk *vfstest.Memory, n *subject, root *ledger.Block) {
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
		for slot := root.Slot + 1; slot <= 130; slot++ {
			_, _, err := n.Block(ledger.Query{}, slot)
			_, _, errTx := n.Transaction(ledger.Query{}, signature(int(slot)))
			ledgertest.ErrorIs(t, errors.Join(err, errTx), nil, "slot %d, the floor is %d: its block and its transaction", slot, n.Head().Floor)
		}
	})
}

// TestSnapshotsPinNothingWhileTheyAreOffered has the offer of a snapshot take long: accounts that are written meanwhile get no
// second record.
func TestSnapshotsPinNothingWhileTheyAreOffered(t *testing.T) {
	offering := false
	c := Config{SnapshotInterval: 4 * foldAfter, OnSnapshot: func(ctx context.Context, _ snapshot.Written) {
		offering = true
		<-ctx.Done()
	}}
	diskTest(t, c, func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		writes := func(amount ledger.Lamports) (all []ledger.AccountWrite) {
			for i := range 100 {
				all = append(all, lamports(key(i+2), amount))
			}
			return all
		}
		for amount := range ledger.Lamports(5) {
			next := child(block, block.Slot+1, 0, writes(amount+1)...)
			n.send(next, status(next, ledger.StatusFinalized))
			block = next
			pause(2 * foldAfter)
		}
		if retired := n.shards[0].Counters().Retired.Load() + n.shards[1].Counters().Retired.Load(); !offering || retired > 0 {
			t.Errorf("%d records are kept for a snapshot that is written (it is offered: %v)", retired, offering)
		}
	})
}
