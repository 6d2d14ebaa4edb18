package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

// turnLog commits when the test says so, and then as it says.
type turnLog struct {
	NullLog
	turns   chan error
	commits [][]*ledger.Record
}

func newTurnLog() *turnLog { return &turnLog{turns: make(chan error)} }

func (l *turnLog) Commit(records []*ledger.Record) error {
	l.commits = append(l.commits, records)
	return <-l.turns
}

// turn lets one commit end, and waits until nothing moves.
func (l *turnLog) turn(err error) {
	l.turns <- err
	synctest.Wait()
}

// TestNextBatchIsAppliedDuringACommit holds a commit back, shows a fork and more events than a batch
// holds, and lets one commit after the other end. What they hold is applied before, unseen, and
// appears batch by batch.
func TestNextBatchIsAppliedDuringACommit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := newTurnLog()
		n := startNode(t, live(), Config{Shards: 2, Log: log})
		root := rootBlock(100, lamports(key(1), 100))
		n.send(root)
		main := chainOf(root, batchEvents)
		lost := child(main[0], 103, 1, lamports(key(1), 7), lamports(key(9), 7))
		stream := append(events(main[0], lost), events(main[1:]...)...) // the fork is undone by main[3]
		n.send(stream...)
		if got := n.Stats().Blocks; got != uint64(1+batchEvents) {
			t.Errorf("%d blocks were taken during the first commit, want a batch more", got)
		}
		if n.Head() != nil || len(n.published) != 0 || len(log.commits) != 1 {
			t.Errorf("%d commits, %d publications before the first ended", len(log.commits), len(n.published))
		}
		log.turn(nil)
		n.mustStand(root.Slot)
		log.turn(nil)
		n.mustStand(main[batchEvents-2].Slot) // the batch that was full
		log.turn(nil)
		n.mustStand(main[batchEvents-1].Slot)
		version := ledger.Version(0)
		for i, p := range n.published {
			for _, r := range p.Records {
				if version++; r.Version != version {
					t.Fatalf("publication %d has record %d, want %d", i, r.Version, version)
				}
			}
			if at := p.Head.Tips[ledger.Processed].Version; at != version {
				t.Errorf("publication %d: the head is at version %d, want %d", i, at, version)
			}
		}
		if len(n.published) != len(log.commits) {
			t.Errorf("%d publications of %d commits", len(n.published), len(log.commits))
		}
		n.mustStop()
	})
}

// TestBatchBehindAFailedCommitIsNeverSeen fails a commit while the next batch is applied already.
func TestBatchBehindAFailedCommitIsNeverSeen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := newTurnLog()
		n := startNode(t, live(), Config{Shards: 2, Log: log})
		root := rootBlock(100, lamports(key(1), 100))
		n.send(root)
		log.turn(nil)
		n.send(events(chainOf(root, 5)...)...)
		log.turn(errDisk)
		n.mustStop()
		n.cancel()
		if len(log.commits) != 2 || len(n.published) != 1 || n.Head().Tips[ledger.Processed].Slot != root.Slot {
			t.Errorf("%d commits, %d publications, at slot %d, want 2, 1 and the root", len(log.commits), len(n.published), n.Head().Tips[ledger.Processed].Slot)
		}
	})
}

// TestStopCommitsWhatIsApplied stops a node whose log is busy: the batch that was applied meanwhile
// is committed too, and the last snapshot is of what was seen. Where the log fails, nothing
// more is seen.
func TestStopCommitsWhatIsApplied(t *testing.T) {
	for name, fault := range map[string]error{"works": nil, "fails": errDisk} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				memory := vfstest.NewMemory()
				disk := vfstest.NewFaulty(memory, vfstest.Plan{})
				n, root := diskNode(t, disk, Config{})
				gate := make(chan struct{})
				plan := vfstest.Plan{Before: func(c vfstest.Call) {
					if c.Kind == vfstest.KindSync {
						<-gate
					}
				}}
				if fault != nil {
					plan.Call, plan.Err, plan.Kinds, plan.Name = 1, fault, vfstest.KindSync, ".wal"
				}
				disk.Arm(plan)
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
				close(gate)
				n.mustStop()
				n.config.Dir.Close()
				want := next[4].Slot
				if fault != nil {
					want = root.Slot
				}
				if at := n.Head().Tips[ledger.Processed].Slot; at != want {
					t.Errorf("seen up to slot %d, want %d", at, want)
				}
				if fault == nil {
					mustHold(t, memory.Crash(0, 1), want)
					if got := n.Stats().Snapshot.Slot; got != want {
						t.Errorf("the last snapshot is of slot %d, want %d", got, want)
					}
				}
			})
		})
	}
}

// TestStopOnAFullDiskForgetsWhatIsApplied stops a node whose disk is full, with a batch that waits for
// space and one behind it: neither is ever seen, and no snapshot is of them.
func TestStopOnAFullDiskForgetsWhatIsApplied(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, root := diskNode(t, disk, Config{MinFreeBytes: 1, SegmentBytes: 4 << 10})
		block := n.finalize(root)
		used := disk.UsedBytes()
		disk.SetCapacity(1)
		next := chainOf(block, 60)
		for _, b := range next {
			n.send(b)
			n.send(status(b, ledger.StatusFinalized))
			if n.Status().Unhealthy != "" {
				break
			}
			block = b
		}
		n.send(events(chainOf(block, 3)[1:]...)...)
		if n.seq.AllShown() {
			t.Fatalf("everything is visible on a full disk of %d bytes", used)
		}
		seen := n.Head().Tips[ledger.Processed].Version
		n.mustStop()
		disk.SetCapacity(0)
		if s := n.Stats().Snapshot; s.Count != 0 {
			t.Errorf("a snapshot of slot %d was taken", s.Slot)
		}
		n.config.Dir.Close()
		if head, err := heldBy(t, disk); err != nil || head.Tips[ledger.Processed].Version != seen {
			t.Errorf("the disk holds %+v, %v, want version %d", head, err, seen)
		}
	})
}

// TestSnapshotWaitsForWhatIsApplied lets a snapshot come due while batches are under way: it is of a
// block that is visible when it begins.
func TestSnapshotWaitsForWhatIsApplied(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		n, block := diskNode(t, disk, Config{SnapshotInterval: time.Second})
		gate := make(chan struct{})
		disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c.Kind == vfstest.KindSync {
				<-gate
			}
		}})
		for range 5 {
			block = n.finalize(block)
			time.Sleep(time.Second)
		}
		if s := n.Stats().Snapshot; s.Count != 0 || s.Running {
			t.Errorf("a snapshot of slot %d was begun during a commit", s.Slot)
		}
		close(gate)
		synctest.Wait()
		final := n.Head().Tips[ledger.Finalized].Slot
		if s := n.Stats().Snapshot; s.Slot == 0 || s.Slot > final || final != block.ParentSlot {
			t.Errorf("the snapshot is of slot %d, final is %d, want %d", s.Slot, final, block.ParentSlot)
		}
		n.mustStop()
	})
}

// TestPublicationTellsWhenItsBlockCame holds commits back for a known time: a block waits for its own
// commit, and one that came meanwhile for both.
func TestPublicationTellsWhenItsBlockCame(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := newTurnLog()
		n := startNode(t, live(), Config{Log: log})
		root := rootBlock(100, lamports(key(1), 100))
		n.send(root)
		time.Sleep(30 * time.Millisecond)
		n.send(child(root, 101, 1, lamports(key(1), 101)))
		time.Sleep(20 * time.Millisecond)
		log.turn(nil)
		time.Sleep(10 * time.Millisecond)
		log.turn(nil)
		for i, want := range []time.Duration{50 * time.Millisecond, 30 * time.Millisecond} {
			if p := n.published[i]; p.Head.Published.Sub(p.ReceivedAt) != want {
				t.Errorf("publication %d was visible %v after its block came, want %v", i, p.Head.Published.Sub(p.ReceivedAt), want)
			}
		}
		n.mustStop()
	})
}
