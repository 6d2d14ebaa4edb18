package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs/vfstest"
)

// F48: TestStopDuringASnapshotTakesOneAllTheSame stops a node while it writes a snapshot, which is given
// up: the one on the way out takes its place.
func TestStopDuringASnapshotTakesOneAllTheSame(t *testing.T) {
	diskTest(t, Config{SnapshotInterval: time.Second}, func(t *testing.T, memory *vfstest.Memory, n *subject, block *ledger.Block) {
		block = n.finalize(block)
		release := stall(n.disk, vfstest.KindCreate, "")
		time.Sleep(2 * time.Second)
		n.finalize(block)
		if !n.Stats().Snapshot.Running {
			t.Fatal("no snapshot is being written")
		}
		n.cancel()
		synctest.Wait()
		release()
		n.mustStop()
		if s := n.Stats().Snapshot; len(filesOf(memory, ".state")) != 1 || s.Failures != 0 {
			t.Errorf("%d snapshots on the disk, %d failures, want one and none", len(filesOf(memory, ".state")), s.Failures)
		} else if s.Accounts == 0 || s.Accounts != uint64(n.accounts()) {
			t.Errorf("the snapshot is told to have read %d of %d accounts", s.Accounts, n.accounts())
		}
	})
}

// F11: TestWhatCannotBeRemovedIsNoFailedSnapshot lets removing what snapshots make redundant fail.
func TestWhatCannotBeRemovedIsNoFailedSnapshot(t *testing.T) {
	diskTest(t, Config{SnapshotInterval: time.Second}, func(t *testing.T, memory *vfstest.Memory, n *subject, block *ledger.Block) {
		n.disk.Arm(vfstest.Plan{Call: 1, Lasting: true, Kinds: vfstest.KindRemove, Name: ".state"})
		for range 5 {
			time.Sleep(2 * time.Second)
			block = n.finalize(block)
		}
		if s := n.Stats().Snapshot; s.Count < 4 || s.Failures != 0 || len(filesOf(memory, ".state")) <= ingest.KeptSnapshots {
			t.Errorf("%d snapshots, %d failures, %d on the disk", s.Count, s.Failures, len(filesOf(memory, ".state")))
		}
	})
}

// TestIdleNodeTakesTheSnapshotThatIsDue shows nothing after the interval began.
func TestIdleNodeTakesTheSnapshotThatIsDue(t *testing.T) {
	diskTest(t, Config{SnapshotInterval: time.Minute}, func(t *testing.T, disk *vfstest.Memory, n *subject, block *ledger.Block) {
		n.finalize(block)
		for _, later := range []time.Duration{61 * time.Second, time.Hour} {
			pause(later)
			ledgertest.Equal(t, n.Stats().Snapshot.Count, 1, "snapshots of one block %v later", later)
		}
	})
}

// A snapshot is due again when the one before has ended, though nothing happens any more that would make the node look.
func TestIdleNodeTakesTheSnapshotAfterALongOne(t *testing.T) {
	diskTest(t, Config{SnapshotInterval: time.Second}, func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		block = n.finalize(block)
		release := stall(n.disk, vfstest.KindCreate, "")
		time.Sleep(2 * time.Second)
		n.finalize(block) // the last block comes while the snapshot of the one before is taken
		time.Sleep(time.Minute)
		release()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		ledgertest.Equal(t, n.Stats().Snapshot.Slot, n.Head().Tips[ledger.Finalized].Slot, "the newest snapshot, 65 s after the last block")
		ledgertest.Equal(t, n.Stats().Snapshot.Running, false, "whether another is being written")
	})
}

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
		for slot := n.Head().Floor; slot <= 130; slot++ {
			if _, _, err := n.Block(ledger.Query{}, slot); err != nil {
				why, _ := absence(err)
				t.Errorf("slot %d, floor %d: %v (pruned is %v)", slot, n.Head().Floor, why.Absence, ledger.SlotPruned)
			}
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
