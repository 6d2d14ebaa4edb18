package engine

import (
	"cmp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// onDisk returns the configuration of a node whose data directory lies on a disk.
func onDisk(t testing.TB, disk vfs.FS, c Config) Config {
	t.Helper()
	c, err := tryOnDisk(disk, c)
	must(t, err)
	t.Cleanup(func() { c.Dir.Close() })
	return c
}

// tryOnDisk is onDisk where the disk may fail. The caller closes the directory.
func tryOnDisk(disk vfs.FS, c Config) (_ Config, err error) {
	c.Dir, err = datadir.OpenOn(disk, "data")
	c.SegmentBytes = cmp.Or(c.SegmentBytes, 16<<10) // a crash clones what is preallocated
	return c, err
}

// bound returns the configuration of a node whose directory, which it gets where it has none, is bound to a filter and to programs.
func bound(t testing.TB, c Config, f *ledger.Filter, data *ledger.DataPrograms) Config {
	t.Helper()
	if c.Dir == nil {
		c = onDisk(t, vfstest.NewMemory(), c)
	}
	must(t, c.Dir.Bind(nil, f, data, false))
	return c
}

// diskNode is a node over a live source on a disk, at its root.
func diskNode(t *testing.T, disk vfs.FS, c Config) (*subject, *ledger.Block) {
	t.Helper()
	c.Shards = 2
	n := startNode(t, live(), onDisk(t, disk, c))
	root := rootBlock(100, lamports(key(1), 100))
	n.send(root)
	return n, root
}

// diskTest runs a test of a node over a live source, at its root, on a disk.
func diskTest(t *testing.T, c Config, f func(t *testing.T, disk *vfstest.Memory, n *subject, root *ledger.Block)) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		memory, disk := faultyDisk()
		n, root := diskNode(t, disk, c)
		n.disk = disk
		f(t, memory, n, root)
	})
}

// close stops a node cleanly and unlocks its directory for the next one.
func (n *subject) close() {
	n.t.Helper()
	n.mustStop()
	n.config.Dir.Close()
}

// finalize shows the next block and makes the one before it final.
func (n *subject) finalize(block *ledger.Block) *ledger.Block {
	n.t.Helper()
	next := chainOf(block, 1)[0]
	n.send(next, status(block, ledger.StatusFinalized))
	return next
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

// opened runs a node without a source on a disk until it has recovered, and stops it. The error is that of the start.
func opened(t *testing.T, disk vfs.FS) (*subject, error) {
	c, err := tryOnDisk(disk, Config{Shards: 3, Retention: scriptRetention})
	if err != nil {
		return nil, err
	}
	defer c.Dir.Close()
	n := startSource(t, nil, c)
	synctest.Wait()
	return n, n.stop()
}

// heldBy returns what the disk alone holds.
func heldBy(t *testing.T, disk vfs.FS) (*ledger.Head, error) {
	n, err := opened(t, disk)
	if err != nil {
		return nil, err
	}
	return n.Head(), nil
}

// mustHold fails the test unless the disk alone holds the ledger up to a slot.
func mustHold(t *testing.T, disk vfs.FS, slot ledger.Slot) {
	t.Helper()
	if head, err := heldBy(t, disk); err != nil || head.Tips[ledger.Processed].Slot != slot {
		t.Fatalf("the disk holds %+v, %v, want slot %d", head, err, slot)
	}
}

// pause lets time pass until nothing moves any more.
func pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// faultyDisk returns an empty disk, and what has its calls fail.
func faultyDisk() (*vfstest.Memory, *vfstest.Faulty) {
	memory := vfstest.NewMemory()
	return memory, vfstest.NewFaulty(memory, vfstest.Plan{})
}

// stall has calls of a kind, of files with this in their names, wait until release is called, and go on as a plan says.
func stall(disk *vfstest.Faulty, plan vfstest.Plan, kind vfstest.Kind, name string) (release func()) {
	gate := make(chan struct{})
	plan.Before = func(c vfstest.Call) {
		if c.Kind == kind && strings.Contains(c.Name, name) {
			<-gate
		}
	}
	disk.Arm(plan)
	return func() {
		close(gate)
		synctest.Wait()
	}
}

// crashAtEveryCall has the disk crash at every stride-th call that work makes, and gives check what may be left then,
// for each share of what was not synced; with -short, for one of them in turn.
func crashAtEveryCall(t *testing.T, begun *vfstest.Memory, stride int, shares []float64,
	work func(call int, disk vfs.FS) error, check func(call int, left *vfstest.Memory)) {
	t.Helper()
	for call := 1; ; call += stride {
		memory := begun.Clone()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{Call: call, Fault: vfstest.Crash})
		if err := work(call, disk); !disk.Hit() {
			must(t, err)
			t.Logf("%d calls", call-1)
			return
		}
		tried := shares
		if testing.Short() {
			i := call / stride % len(shares)
			tried = shares[i : i+1]
		}
		for i, share := range tried {
			if check(call, memory.Crash(share, uint64(100*call+i))); t.Failed() {
				t.Fatalf("crash at call %d, %v of what was not synced is left", call, share)
			}
		}
	}
}
