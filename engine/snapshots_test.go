package engine

import (
	"context"
	"testing"

	"ledgerd/engine/ledger"

	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs/vfstest"
)

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
