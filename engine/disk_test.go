package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/sim"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// diskNode is a node over a live source on a disk, at its root.
func diskNode(t *testing.T, disk vfs.FS, c Config) (*subject, *ledger.Block) {
	t.Helper()
	c.Shards = 2
	if c.SegmentBytes == 0 {
		c.SegmentBytes = 16 << 10
	}
	n := startNode(t, live(), onDisk(t, disk, c))
	root := rootBlock(100, lamports(key(1), 100))
	n.send(root)
	return n, root
}

// mustStand fails the test unless the node answers from a slot and the account that each block
// of chainOf writes agrees with it.
func (n *subject) mustStand(slot ledger.Slot) {
	n.t.Helper()
	a, v, err := n.Account(ledger.Query{}, key(1))
	if err != nil || v.Tip().Slot != slot || a.Lamports != ledger.Lamports(slot) {
		n.t.Fatalf("answers %d lamports, %v, want those of slot %d", a.Lamports, err, slot)
	}
}

// mustHold fails the test unless the disk alone holds the ledger up to a slot.
func mustHold(t *testing.T, disk vfs.FS, slot ledger.Slot) {
	t.Helper()
	if head, err := heldBy(t, disk); err != nil || head.Tips[ledger.Processed].Slot != slot {
		t.Fatalf("the disk holds %+v, %v, want slot %d", head, err, slot)
	}
}

// TestFullDiskPausesIngest fills the disk and makes room again, many times: reads go on, health
// says why, and with space ingest goes on by itself and nothing is lost or made twice.
func TestFullDiskPausesIngest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, block := diskNode(t, disk, Config{MinFreeBytes: 1})
		for range rounds(t, 30) {
			disk.SetCapacity(disk.UsedBytes()) // not a page more
			next := chainOf(block, 40)
			shown := 0
			for ; shown < len(next) && n.Status().Unhealthy == ""; shown++ {
				n.send(next[shown])
			}
			if why := n.Status().Unhealthy; !strings.Contains(why, "disk is full") {
				t.Fatalf("health says %q on a full disk after %d blocks", why, shown)
			}
			time.Sleep(5 * time.Second)
			n.mustStand(next[shown-1].Slot - 1) // the last one is not durable
			disk.SetCapacity(0)
			time.Sleep(2 * spaceRetry)
			synctest.Wait()
			if why := n.Status().Unhealthy; why != "" {
				t.Fatalf("health says %q with space on the disk", why)
			}
			block = next[shown-1]
			n.mustStand(block.Slot)
			mustHold(t, disk.Crash(0, 1), block.Slot)
		}
		n.mustStop()
		if n.Stats().DiskPauses == 0 {
			t.Error("no pause was counted")
		}
	})
}

// TestStartOnAFullDiskServes starts a node on a disk without a page to spare: it answers at once, and
// follows its source once there is space.
func TestStartOnAFullDiskServes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, root := diskNode(t, disk, Config{})
		n.mustStop()
		n.config.Dir.Close()
		disk.SetCapacity(disk.UsedBytes())
		mustHold(t, disk, root.Slot)
		again := startNode(t, live(), onDisk(t, disk, Config{MinFreeBytes: 1}))
		synctest.Wait()
		again.mustStand(root.Slot)
		again.send(chainOf(root, 1)[0])
		if why := again.Status().Unhealthy; !strings.Contains(why, "reads go on") {
			t.Errorf("health says %q", why)
		}
		again.mustStand(root.Slot)
		disk.SetCapacity(0)
		time.Sleep(2 * spaceRetry)
		synctest.Wait()
		again.mustStand(root.Slot + 1)
		again.mustStop()
	})
}

// TestStopOnAFullDiskIsClean stops a node whose ingest waits for space.
func TestStopOnAFullDiskIsClean(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, root := diskNode(t, disk, Config{SegmentBytes: 4 << 10, MinFreeBytes: 1})
		next := chainOf(root, 60)
		n.send(events(next[:20]...)...)
		disk.SetCapacity(1)
		for _, b := range next[20:] {
			if n.send(b); n.Status().Unhealthy != "" {
				break
			}
		}
		if why := n.Status().Unhealthy; !strings.Contains(why, "disk is full") {
			t.Fatalf("health says %q on a full disk", why)
		}
		stood := n.Head().Tips[ledger.Processed].Slot
		n.mustStop()
		n.config.Dir.Close()
		disk.SetCapacity(0)
		mustHold(t, disk, stood)
	})
}

// TestLowDiskStopsSnapshotsThenIngest lets the space shrink: first snapshots end, then ingest, and
// the disk is never quite full.
func TestLowDiskStopsSnapshotsThenIngest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, block := diskNode(t, disk, Config{MinFreeBytes: 1 << 20, SnapshotInterval: time.Second})
		disk.SetCapacity(disk.UsedBytes() + 3<<19) // one and a half of what ingest wants to leave
		for _, b := range chainOf(block, 3) {
			time.Sleep(2 * time.Second)
			n.send(b, status(b, ledger.StatusFinalized))
			block = b
		}
		if s := n.Stats().Snapshot; s.Count != 0 || s.Failures == 0 {
			t.Errorf("%d snapshots, %d failures with little space, want none taken", s.Count, s.Failures)
		}
		if why := n.Status().Unhealthy; why != "" {
			t.Errorf("health says %q while ingest goes on", why)
		}
		n.mustStand(block.Slot)
		disk.SetCapacity(disk.UsedBytes() + 1<<19)
		time.Sleep(2 * spaceRetry)
		n.send(chainOf(block, 1)[0])
		if why := n.Status().Unhealthy; !strings.Contains(why, "disk is full") {
			t.Errorf("health says %q with less space than ingest wants to leave", why)
		}
		n.mustStand(block.Slot)
		disk.SetCapacity(0)
		time.Sleep(2 * spaceRetry)
		synctest.Wait()
		n.mustStand(block.Slot + 1)
		n.mustStop()
	})
}

// TestLogDoesNotFillTheDisk follows many blocks on a disk that is some times larger than the state,
// with no snapshot due by time: they are taken all the same, and the log behind them goes.
func TestLogDoesNotFillTheDisk(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, block := diskNode(t, disk, Config{MinFreeBytes: 64 << 10})
		disk.SetCapacity(1 << 20)
		for i, b := range chainOf(block, 4000) {
			for _, e := range []ledger.Event{with(b, signature(i)), status(block, ledger.StatusFinalized)} {
				n.send(e)
				if why := n.Status().Unhealthy; why != "" {
					t.Fatalf("health says %q after %d blocks", why, i)
				}
			}
			block = b
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		n.mustStand(block.Slot)
		if s := n.Stats(); s.DiskPauses > 0 || s.Log.Position < 2<<20 {
			t.Errorf("%d pauses over %d bytes of log, want none over twice what the disk holds", s.DiskPauses, s.Log.Position)
		}
		n.mustStop()
	})
}

// TestFailedSyncIsTheEndOfTheLog fails one sync of the log: nothing is written to it or synced any
// more, reads go on, and a restart holds what was seen.
func TestFailedSyncIsTheEndOfTheLog(t *testing.T) {
	for _, err := range []error{syscall.EIO, syscall.ENOSPC} {
		bubble.Test(t, func(t *testing.T) {
			memory := vfstest.NewMemory()
			disk := vfstest.NewFaulty(memory, vfstest.Plan{})
			n, root := diskNode(t, disk, Config{})
			next := chainOf(root, 5)
			n.send(next[0])
			disk.Arm(vfstest.Plan{Call: 1, Err: err, Kinds: vfstest.KindSync, Name: ".wal", LoseOnSyncFailure: true})
			n.send(next[1], next[2])
			if why := n.Status().Unhealthy; !strings.Contains(why, "the disk failed") || strings.Contains(why, "data/") {
				t.Errorf("health says %q", why)
			}
			n.mustStand(next[0].Slot)
			time.Sleep(time.Minute)
			n.mustStop()
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
			mustHold(t, memory.Crash(0, 1), next[0].Slot)
		})
	}
}

// TestDiskStallHoldsUpNobodyButIngest stalls a sync: queries are answered from the slot before, no
// more events are taken than two commits hold, and afterwards all of them appear.
func TestDiskStallHoldsUpNobodyButIngest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		n, root := diskNode(t, disk, Config{})
		gate := make(chan struct{})
		disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c.Kind == vfstest.KindSync {
				<-gate
			}
		}})
		next := chainOf(root, 3*eventLane)
		taken := 0
		for taken < len(next) {
			synctest.Wait()
			select {
			case n.source.feed <- next[taken]:
				taken++
				continue
			default:
			}
			break
		}
		if taken > 2*eventLane {
			t.Errorf("%d events were taken while the disk stalled", taken)
		}
		time.Sleep(30 * time.Second)
		n.mustStand(root.Slot)
		close(gate)
		synctest.Wait()
		n.mustStand(next[taken-1].Slot)
		n.mustStop()
	})
}

// TestWhatADeadProcessLeftIsSyncedBeforeItIsShown kills the process between a write and its sync.
// The next process finds the block in the machine's memory and may show it only once a power cut
// would leave it.
func TestWhatADeadProcessLeftIsSyncedBeforeItIsShown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := vfstest.NewMemory()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{})
		n, root := diskNode(t, disk, Config{})
		gate := make(chan struct{})
		disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c.Kind == vfstest.KindSync {
				<-gate
			}
		}})
		n.send(events(chainOf(root, 1)...)...)
		n.mustStand(root.Slot)
		left := memory.Clone() // what was not synced still is not
		close(gate)
		n.mustStop()
		mustHold(t, left, root.Slot+1)
		mustHold(t, left.Crash(0, 1), root.Slot+1)
	})
}

// TestFailedSyncBetweenCommitsStopsIngest fails the sync that runs by itself under an interval.
func TestFailedSyncBetweenCommitsStopsIngest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		n, root := diskNode(t, disk, Config{Sync: wal.Policy{Mode: wal.Interval, Interval: time.Second}})
		n.send(events(chainOf(root, 1)...)...)
		disk.Arm(vfstest.Plan{Call: 1, Kinds: vfstest.KindSync, Name: ".wal"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if why := n.Status().Unhealthy; !strings.Contains(why, "the disk failed") {
			t.Errorf("health says %q after a sync failed that no commit waited for", why)
		}
		n.mustStand(root.Slot + 1)
		n.mustStop()
	})
}

// TestPoliciesKeepWhatTheyPromise stops a node's process or its machine under each policy.
func TestPoliciesKeepWhatTheyPromise(t *testing.T) {
	for text, tt := range map[string]struct{ process, machine, later bool }{
		"always":      {process: true, machine: true, later: true},
		"interval:1s": {process: true, later: true},
		"off":         {process: true},
	} {
		policy, err := wal.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		bubble.Test(t, func(t *testing.T) {
			disk := vfstest.NewMemory()
			n, root := diskNode(t, disk, Config{Sync: policy})
			time.Sleep(1500 * time.Millisecond)
			block := chainOf(root, 1)[0]
			n.send(block)
			n.mustStand(block.Slot)
			for what, cut := range map[string]struct {
				disk *vfstest.Memory
				kept bool
			}{
				"the process died": {disk.Crash(1, 1), tt.process},
				"power failed":     {disk.Crash(0, 1), tt.machine},
			} {
				head, err := heldBy(t, cut.disk)
				if err != nil {
					t.Fatalf("%s, %s: %v", text, what, err)
				}
				if kept := head.Tips[ledger.Processed].Slot == block.Slot; kept != cut.kept {
					t.Errorf("%s, %s at once: kept %v, want %v", text, what, kept, cut.kept)
				}
			}
			time.Sleep(1500 * time.Millisecond)
			head, err := heldBy(t, disk.Crash(0, 1))
			if err != nil {
				t.Fatal(err)
			}
			if kept := head.Tips[ledger.Processed].Slot == block.Slot; kept != tt.later {
				t.Errorf("%s, power failed a second later: kept %v, want %v", text, kept, tt.later)
			}
			if durable := n.Stats().Log.DurableSlot; (durable == block.Slot) != tt.later {
				t.Errorf("%s: durable slot %d", text, durable)
			}
			n.mustStop()
			mustHold(t, disk.Crash(0, 1), block.Slot) // a clean stop syncs
		})
	}
}

// TestThreeWayHash follows the simulator to the same slot straight, by way of crashes at
// random points, and over other numbers of shards: the state is the same.
func TestThreeWayHash(t *testing.T) {
	const slots = "seed=3,accounts=300,slot_time=0,tps=40,fork_rate=0.2,skip_rate=0.1,finality=8,slots=240"
	bubble.Test(t, func(t *testing.T) {
		want := simulated(t, vfstest.NewMemory(), slots, 1, 1000)
		r := seeded(t, 8)
		for _, shards := range []int{1, 3} {
			disk := vfstest.NewMemory()
			for stop := ledger.Slot(5); stop < 240; stop += ledger.Slot(10 + r.IntN(40)) {
				disk = crashAt(t, disk, slots, shards, stop, r)
			}
			got := simulated(t, disk, slots, 1+shards%3, 1000)
			if got.StateHash != want.StateHash || got.Tips[0].Hash != want.Tips[0].Hash || got.Tips[0].Seq != want.Tips[0].Seq {
				t.Errorf("%d shards: crashed and recovered to %+v, want %+v", shards, got, want)
			}
		}
	})
}

// simulated runs the simulator to its end and returns the head.
func simulated(t *testing.T, disk *vfstest.Memory, parameters string, shards int, stop ledger.Slot) *ledger.Head {
	t.Helper()
	n := simNode(t, disk, parameters, shards, stop, func() {})
	synctest.Wait()
	n.mustStop()
	return n.Head()
}

// crashAt runs the simulator until a slot is published and returns what a power cut leaves then.
func crashAt(t *testing.T, disk *vfstest.Memory, parameters string, shards int, stop ledger.Slot, r *rand.Rand) (left *vfstest.Memory) {
	t.Helper()
	n := simNode(t, disk, parameters, shards, stop, func() {
		if left == nil {
			left = disk.Crash(r.Float64(), r.Uint64())
		}
	})
	synctest.Wait()
	n.mustStop()
	if left == nil {
		return disk
	}
	return left
}

func simNode(t *testing.T, disk *vfstest.Memory, parameters string, shards int, stop ledger.Slot, reached func()) *subject {
	t.Helper()
	source, err := sim.Open(parameters)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := datadir.OpenOn(disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	n := &subject{t: t, ended: make(chan struct{})}
	n.Engine = New(Config{
		Source: source, Dir: dir, Shards: shards, SegmentBytes: 64 << 10, Logger: slog.New(slog.DiscardHandler),
		OnPublish: func(p *ledger.Publication) {
			if p.Head.Tips[ledger.Processed].Slot >= stop {
				reached()
			}
		},
	})
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(t.Context())
	go func() {
		defer close(n.ended)
		defer dir.Close()
		n.err = n.Engine.Run(ctx)
	}()
	return n
}

// TestADiskFailureIsToldAtTheEnd, be it in a commit or between two: the node is not to end as if all were well.
func TestADiskFailureIsToldAtTheEnd(t *testing.T) {
	for _, policy := range []wal.Policy{{}, {Mode: wal.Interval, Interval: time.Second}} {
		bubble.Test(t, func(t *testing.T) {
			disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
			n, root := diskNode(t, disk, Config{Sync: policy})
			if err := n.DiskFailure(); err != nil {
				t.Errorf("before anything failed: %v", err)
			}
			disk.Arm(vfstest.Plan{Call: 1, Kinds: vfstest.KindSync, Name: ".wal"})
			n.send(events(chainOf(root, 1)...)...)
			time.Sleep(2 * time.Second)
			n.mustStop()
			if err := n.DiskFailure(); !errors.Is(err, wal.ErrFailed) {
				t.Errorf("%v: DiskFailure() = %v, want %v", policy, err, wal.ErrFailed)
			}
		})
	}
}

// TestWantOfFilesPausesIngest takes all file descriptors away, again and again, where the log wants its next
// segment, and where a snapshot wants its file: when some are free again the node goes on by itself.
func TestWantOfFilesPausesIngest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := vfstest.NewMemory()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{})
		n, block := diskNode(t, disk, Config{SegmentBytes: 4 << 10})
		const opening = vfstest.KindCreate | vfstest.KindOpen | vfstest.KindOpenWrite | vfstest.KindList | vfstest.KindSyncDir
		for _, kinds := range []vfstest.Kind{opening, vfstest.KindSyncDir} {
			disk.Arm(vfstest.Plan{Call: 1, Lasting: true, Kinds: kinds, Err: syscall.EMFILE})
			for next := chainOf(block, 60); len(next) > 0 && n.Status().Unhealthy == ""; next = next[1:] {
				block = next[0]
				n.send(block)
			}
			if why := n.Status().Unhealthy; why != "no further file can be opened: ingest pauses until that has passed, reads go on" {
				t.Fatalf("health says %q", why)
			}
			n.mustStand(block.Slot - 1)
			disk.Heal()
			time.Sleep(2 * spaceRetry)
			synctest.Wait()
			if why := n.Status().Unhealthy; why != "" {
				t.Fatalf("health says %q with files to be opened", why)
			}
			n.mustStand(block.Slot)
			mustHold(t, memory.Crash(0, 1), block.Slot)
		}
		n.mustStop()
		if err := n.DiskFailure(); err != nil {
			t.Errorf("a shortage that passed counts as a failure: %v", err)
		}
	})
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		n, block := diskNode(t, disk, Config{SnapshotInterval: time.Second})
		disk.Arm(vfstest.Plan{Call: 1, Lasting: true, Kinds: vfstest.KindCreate | vfstest.KindOpen, Name: "snapshots", Err: syscall.ENFILE})
		for _, taken := range []bool{false, true} {
			time.Sleep(2 * time.Second)
			block = n.finalize(block)
			if s := n.Stats().Snapshot; s.Failures == 0 || (s.Count > 0) != taken || n.Status().Unhealthy != "" {
				t.Fatalf("%d snapshots, %d failures, health says %q; want any: %v", s.Count, s.Failures, n.Status().Unhealthy, taken)
			}
			disk.Heal()
		}
		n.mustStop()
	})
}
