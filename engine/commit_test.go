package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// gated starts a node whose commits are durable when turn is called, one at a time, and then waits until nothing moves.
func gated(t *testing.T) (n *subject, turn func()) {
	t.Helper()
	turns := make(chan struct{})
	c := onDisk(t, vfstest.NewMemory(), Config{Shards: 2, OnSync: func(time.Duration) { <-turns }})
	n = startNode(t, live(), c)
	t.Cleanup(func() { close(turns) }) // before the node stops
	return n, func() {
		turns <- struct{}{}
		synctest.Wait()
	}
}

// TestNextBatchIsAppliedDuringACommit holds commits back for a known time, shows a fork and more events than a batch
// holds, and lets one commit after the other end. What they hold is applied before, unseen by any query, health check or
// publication, and appears batch by batch. Each publication tells when the first event of its batch came.
func TestNextBatchIsAppliedDuringACommit(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		n, turn := gated(t)
		root := rootBlock(100, lamports(key(1), 100))
		n.send(root)
		main := chainOf(root, ingest.BatchEvents)
		lost := child(main[0], 103, 1, lamports(key(1), 7), lamports(key(9), 7))
		time.Sleep(30 * time.Millisecond)
		n.send(main[0], lost)
		time.Sleep(5 * time.Millisecond)
		n.send(events(main[1:]...)...) // main[3] undoes the fork
		ledgertest.Equal(t, n.Stats().Blocks, uint64(1+ingest.BatchEvents), "blocks taken during the first commit, which are a batch more,")
		if n.Head() != nil || len(n.published) != 0 || n.Status().Unhealthy == "" {
			t.Errorf("%d publications, health %q before the first commit ended", len(n.published), n.Status().Unhealthy)
		}
		if _, v, err := n.Account(ledger.Query{}, key(1)); !errors.Is(err, ledger.ErrUnavailable) || v.Head != nil {
			t.Errorf("an account before the commit returned: %v, want unavailable", err)
		}
		for i, want := range []struct {
			slot  ledger.Slot
			after time.Duration
		}{{100, 45 * time.Millisecond}, {main[ingest.BatchEvents-2].Slot, 25 * time.Millisecond}, {main[ingest.BatchEvents-1].Slot, 20 * time.Millisecond}} { // the second batch was full
			time.Sleep(10 * time.Millisecond)
			turn()
			n.mustStand(want.slot)
			p := n.published[i]
			ledgertest.Equal(t, p.Head.Published.Sub(p.ReceivedAt), want.after, "publication %d was visible after its first block came by", i)
		}
		ledgertest.Equal(t, len(n.published), 3, "publications, of as many commits")
	})
}

// TestBatchIsFullOfLargeBlocks holds a commit back and shows three blocks of 40 MiB of data each, of which one fills a batch.
func TestBatchIsFullOfLargeBlocks(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		n, turn := gated(t)
		root := rootBlock(100)
		n.send(root)
		data := ledger.NewData(make([]byte, ledger.MaxDataBytes))
		chain := chainOf(root, 3)
		for _, b := range chain {
			for i := range 4 {
				b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: key(i), Lamports: 1, Owner: key(9), Known: ledger.FieldOwner | ledger.FieldData, Data: data})
			}
		}
		n.send(events(chain...)...)
		for taken := range uint64(3) {
			if got := n.Stats().Blocks; got != 2+taken {
				t.Fatalf("%d blocks were taken before commit %d ends, want %d", got, taken, 2+taken)
			}
			turn()
		}
		turn()
		ledgertest.Equal(t, n.Head().Tip(ledger.Processed).Slot, chain[2].Slot, "the slot that is shown")
	})
}

// F48: TestStopCommitsWhatIsApplied stops a node whose log is busy: the batch that was applied meanwhile
// is committed too, and the last snapshot is of what was seen.
func TestStopCommitsWhatIsApplied(t *testing.T) {
	diskTest(t, Config{}, func(t *testing.T, memory *vfstest.Memory, n *subject, root *ledger.Block) {
		release := stall(n.disk, vfstest.KindSync, "")
		next := chainOf(root, 5)
		n.send(next[0])
		for _, b := range next[1:] {
			n.send(b, status(b, ledger.StatusFinalized))
		}
		n.cancel()
		synctest.Wait()
		if n.hasEnded() {
			t.Fatal("the node ended during a commit")
		}
		release()
		n.close()
		want := next[4].Slot
		mustHold(t, memory.Crash(0, 1), want)
		ledgertest.Equal(t, n.Head().Tips[ledger.Processed].Slot, want, "the slot up to which all is seen")
		ledgertest.Equal(t, n.Stats().Snapshot.Slot, want, "the slot of the last snapshot")
	})
}

// TestStopOnAFullDiskForgetsWhatIsApplied stops a node whose disk is full, with a batch that waits for
// space and one behind it: neither is ever seen, and no snapshot is of them.
func TestStopOnAFullDiskForgetsWhatIsApplied(t *testing.T) {
	diskTest(t, Config{MinFreeBytes: 1, SegmentBytes: 4 << 10}, func(t *testing.T, disk *vfstest.Memory, n *subject, block *ledger.Block) {
		block = n.finalize(block)
		disk.SetCapacity(1)
		block = n.untilPaused(block)
		n.mustSay("disk is full")
		n.finalize(block)
		if n.seq.AllShown() {
			t.Fatal("everything is visible on a full disk")
		}
		seen := n.Head().Tips[ledger.Processed].Version
		n.close()
		disk.SetCapacity(0)
		if s := n.Stats().Snapshot; s.Count != 0 || s.Failures != 0 {
			t.Errorf("a snapshot was tried on the way out: %+v", s)
		}
		if head, err := heldBy(t, disk); err != nil || head.Tips[ledger.Processed].Version != seen {
			t.Errorf("the disk holds %+v, %v, want version %d", head, err, seen)
		}
	})
}

// TestSnapshotWaitsForWhatIsApplied lets a snapshot come due while batches are under way: it is of a
// block that is visible when it begins.
func TestSnapshotWaitsForWhatIsApplied(t *testing.T) {
	diskTest(t, Config{SnapshotInterval: time.Second}, func(t *testing.T, _ *vfstest.Memory, n *subject, block *ledger.Block) {
		release := stall(n.disk, vfstest.KindSync, "")
		for range 5 {
			block = n.finalize(block)
			time.Sleep(time.Second)
		}
		if s := n.Stats().Snapshot; s.Count != 0 || s.Running {
			t.Errorf("a snapshot of slot %d was begun during a commit", s.Slot)
		}
		release()
		final := n.Head().Tips[ledger.Finalized].Slot
		if s := n.Stats().Snapshot; s.Slot == 0 || s.Slot > final || final != block.ParentSlot {
			t.Errorf("the snapshot is of slot %d, final is %d, want %d", s.Slot, final, block.ParentSlot)
		}
	})
}
