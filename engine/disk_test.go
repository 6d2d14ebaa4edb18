package engine

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// TestLogDoesNotFillTheDisk follows many blocks on a disk that is some times larger than the state,
// with no snapshot due by time: they are taken all the same, and the log behind them goes.
func TestLogDoesNotFillTheDisk(t *testing.T) {
	diskTest(t, Config{MinFreeBytes: 32 << 10}, func(t *testing.T, disk *vfstest.Memory, n *subject, block *ledger.Block) {
		disk.SetCapacity(512 << 10)
		for i, b := range chainOf(block, 500) {
			for k := range 25 {
				b.Accounts = append(b.Accounts, lamports(key(10+k), ledger.Lamports(i+1)))
			}
			n.send(b, status(block, ledger.StatusFinalized))
			n.mustSay()
			block = b
			pause(100 * time.Millisecond)
		}
		n.mustStand(block.Slot)
		if s := n.Stats(); s.DiskPauses > 0 || s.Log.Position < 1<<20 {
			t.Errorf("%d pauses over %d bytes of log, want none over twice what the disk holds", s.DiskPauses, s.Log.Position)
		}
	})
}

// F16: TestFailedSyncIsTheEndOfTheLog fails one sync of the log, be it in a commit or by itself between two, while the next batch is
// applied already, a rollback in it: what was durable before stays visible and is answered, nothing else of that commit ever is.
// Nothing is written to the log or synced any more, the node does not end as if all were well, and a restart holds what was seen.
func TestFailedSyncIsTheEndOfTheLog(t *testing.T) {
	root := rootBlock(100, lamports(key(1), 100))
	blocks := append([]*ledger.Block{root}, chainOf(root, 5)...)
	fork := child(root, 110, 1, lamports(key(1), 110))
	for policy, between := range map[wal.Policy]bool{wal.Always: false, wal.Policy(time.Second): true} {
		for seen, fault := range []error{syscall.EIO, syscall.EIO, syscall.ENOSPC} {
			bubbletest.Test(t, func(t *testing.T) {
				memory, disk := faultyDisk()
				info := []ledger.SourceInfo{live(), finite()}[seen%2]
				n := startNode(t, info, onDisk(t, disk, Config{Shards: 2, Sync: policy}))
				for _, b := range blocks[:seen] {
					n.send(b)
				}
				pause(2 * time.Second)
				ledgertest.ErrorIs(t, n.DiskFailure(), nil, "before anything failed")
				gate := make(chan struct{})
				disk.Arm(vfstest.Plan{
					Call: 1, Err: fault, Kinds: vfstest.KindSync, Name: ".wal", LoseOnSyncFailure: true,
					Before: func(c vfstest.Call) {
						if c.Kind == vfstest.KindSync {
							<-gate
						}
					},
				})
				n.send(append(events(blocks[seen:]...), fork)...)
				pause(2 * time.Second)
				close(gate)
				pause(time.Minute)
				if n.mustSay("the disk failed"); strings.Contains(n.Status().Unhealthy, "data/") {
					t.Errorf("health names files: %q", n.Status().Unhealthy)
				}
				if !n.source.ended {
					t.Error("the source runs on, and nothing takes what it shows")
				}
				switch {
				case between && seen > 0: // else the file itself is not durable
					n.mustStand(fork.Slot)
				case seen > 0:
					n.mustStand(blocks[seen-1].Slot)
				case n.Head() != nil:
					t.Errorf("stands at %+v", n.Head())
				}
				n.mustStop()
				if !between && len(n.published) != seen {
					t.Errorf("%d publications, want %d", len(n.published), seen)
				}
				ledgertest.ErrorIs(t, n.DiskFailure(), wal.ErrFailed, "DiskFailure()")
				failed := false
				for _, c := range disk.Trace() {
					if failed && c.Kind&(vfstest.KindWriteAt|vfstest.KindSync|vfstest.KindTruncate|vfstest.KindCreate|vfstest.KindRename) != 0 {
						t.Errorf("%v after a sync failed", c)
					}
					failed = failed || c.Err != nil && c.Kind == vfstest.KindSync
				}
				if !failed {
					t.Fatal("no sync failed")
				}
				if seen > 0 {
					mustHold(t, memory.Crash(0, 1), blocks[seen-1].Slot)
				}
			})
		}
	}
}

// F18: TestDiskStallHoldsUpNobodyButIngest stalls a sync: queries are answered from the slot before, no
// more events are taken than two commits hold, and afterwards all of them appear. Where the process is killed meanwhile,
// the next one finds the first block in the machine's memory and shows it only once a power cut would leave it.
func TestDiskStallHoldsUpNobodyButIngest(t *testing.T) {
	diskTest(t, Config{}, func(t *testing.T, memory *vfstest.Memory, n *subject, root *ledger.Block) {
		release := stall(n.disk, vfstest.KindSync, "")
		next := chainOf(root, 3*ingest.EventLane)
		n.send(next[0])
		taken := 1
		for room := true; room && taken < len(next); synctest.Wait() {
			select {
			case n.source.feed <- next[taken]:
				taken++
			default:
				room = false
			}
		}
		if taken > 2*ingest.EventLane {
			t.Errorf("%d events were taken while the disk stalled", taken)
		}
		time.Sleep(30 * time.Second)
		n.mustStand(root.Slot)
		left := memory.Clone() // what was not synced still is not
		release()
		n.mustStand(next[taken-1].Slot)
		n.mustStop()
		mustHold(t, left, root.Slot+1)
		mustHold(t, left.Crash(0, 1), root.Slot+1)
	})
}
