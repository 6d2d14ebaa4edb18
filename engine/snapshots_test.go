package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestStopDuringASnapshotTakesOneAllTheSame stops a node while it writes a snapshot, which is given
// up: the one on the way out takes its place.
func TestStopDuringASnapshotTakesOneAllTheSame(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory, disk := faultyDisk()
		n, block := diskNode(t, disk, Config{SnapshotInterval: time.Second})
		block = n.finalize(block)
		release := stall(disk, vfstest.KindCreate, "")
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
		}
	})
}

// TestWhatCannotBeRemovedIsNoFailedSnapshot lets removing what snapshots make redundant fail.
func TestWhatCannotBeRemovedIsNoFailedSnapshot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := vfstest.NewMemory()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{Call: 1, Lasting: true, Kinds: vfstest.KindRemove, Name: ".state"})
		n, block := diskNode(t, disk, Config{SnapshotInterval: time.Second})
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
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, block := diskNode(t, disk, Config{SnapshotInterval: time.Minute})
		n.finalize(block)
		for _, later := range []time.Duration{61 * time.Second, time.Hour} {
			pause(later)
			if got := n.Stats().Snapshot.Count; got != 1 {
				t.Errorf("%d snapshots of one block %v later, want 1", got, later)
			}
		}
	})
}

// TestASnapshotHurriesAsLogGathers asks for the share of a core before and after blocks.
func TestASnapshotHurriesAsLogGathers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, root := diskNode(t, vfstest.NewMemory(), Config{})
		began, pace := n.Stats().Log.Position, ingest.Pace(n.log)
		if got := pace.Share(); got != ingest.SnapshotShare {
			t.Errorf("at first: %v of a core, want %v", got, ingest.SnapshotShare)
		}
		n.send(events(chainOf(root, 5)...)...)
		gathered := n.Stats().Log.Position - began
		if got, want := pace.Share(), ingest.SnapshotShare+float64(gathered)/ingest.MaxReplayBytes; gathered == 0 || got != want {
			t.Errorf("after %d bytes of log: %v of a core, want %v", gathered, got, want)
		}
	})
}
