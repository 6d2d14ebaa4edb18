package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
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

// F11: TestWhatCannotBeRemovedIsNoFailedSnapshot lets removing what snapshots make redundant fail. The log, which is seldom synced, is
// synced before each snapshot, so none is newer.
func TestWhatCannotBeRemovedIsNoFailedSnapshot(t *testing.T) {
	c := Config{SnapshotInterval: time.Second, Sync: wal.Policy(time.Hour)}
	diskTest(t, c, func(t *testing.T, memory *vfstest.Memory, n *subject, block *ledger.Block) {
		n.disk.Arm(vfstest.Plan{Call: 1, Lasting: true, Kinds: vfstest.KindRemove, Name: ".state"})
		for range 5 {
			time.Sleep(2 * time.Second)
			block = n.finalize(block)
		}
		if s := n.Stats().Snapshot; s.Count < 4 || s.Failures != 0 || len(filesOf(memory, ".state")) <= ingest.KeptSnapshots {
			t.Errorf("%d snapshots, %d failures, %d on the disk", s.Count, s.Failures, len(filesOf(memory, ".state")))
		}
		pause(2 * time.Second)
		mustHold(t, memory.Crash(0, 1), block.Slot)
	})
}

// TestIdleNodeTakesTheSnapshotsThatAreDue: a snapshot is due after the interval, and again when one that took long has ended, though
// nothing happens that would make the node look. There is one of each block.
func TestIdleNodeTakesTheSnapshotsThatAreDue(t *testing.T) {
	diskTest(t, Config{SnapshotInterval: time.Second}, func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		block = n.finalize(block)
		release := stall(n.disk, vfstest.KindCreate, "")
		pause(2 * time.Second)
		ledgertest.Equal(t, n.Stats().Snapshot.Running, true, "whether a snapshot is being written, a second after it was due,")
		n.finalize(block) // the last block comes while the snapshot of the one before is taken
		time.Sleep(time.Minute)
		release()
		for _, later := range []time.Duration{5 * time.Second, time.Hour} {
			pause(later)
			ledgertest.Equal(t, n.Stats().Snapshot.Slot, n.Head().Tips[ledger.Finalized].Slot, "the newest snapshot %v later", later)
			ledgertest.Equal(t, n.Stats().Snapshot.Count, 2, "snapshots of two blocks %v later", later)
		}
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
