package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

const (
	scriptBlocks   = 200
	scriptFinality = 12               // blocks above the newest finalized one
	scriptTakes    = 20 * time.Second // more than it does
)

var scriptRetention = sequencer.Retention{Slots: 60, Bytes: 1 << 30}

// rerun is a source that shows the same events each time, from the finalized block on where it
// is told one. It stops for a moment now and then, so that commits are of several sizes.
type rerun []rerunEvent

type rerunEvent struct {
	ledger.Event
	slot  ledger.Slot
	pause time.Duration // before it
}

func (s *rerun) Info() ledger.SourceInfo { return live() }

func (s *rerun) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	for _, e := range *s {
		if from != nil && e.slot <= from.Slot {
			continue
		}
		time.Sleep(e.pause)
		if err := emit(ctx, e.Event); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// scripted returns a run of 200 blocks with a fork of three in its middle, statuses, accounts
// that open and close, and the model that followed it.
func scripted() (*rerun, *model) {
	s, m := new(rerun), newModel(live())
	show := func(slot ledger.Slot, e ledger.Event, pause time.Duration) {
		m.event(e)
		*s = append(*s, rerunEvent{e, slot, pause})
	}
	block := rootBlock(100, lamports(key(1), 5), lamports(key(50), 7), holding(key(51), key(52), key(53), 9))
	show(block.Slot, block, 0)
	chain := []*ledger.Block{block}
	for n := 1; n < scriptBlocks; n++ {
		slot := block.Slot + 1 + ledger.Slot(n%7/6) // now and then a skipped slot
		writes := []ledger.AccountWrite{lamports(key(n%20), ledger.Lamports(n+1)), lamports(key(20+n%5), ledger.Lamports(n%2))}
		if n == scriptBlocks/2 {
			at := block
			for i := range 3 {
				at = with(child(at, at.Slot+1, 1, lamports(key(1+i), 1), lamports(key(90), 4)), signature(9000+i))
				show(at.Slot, at, 0)
			}
			slot = at.Slot + 1 // its parent is the block before the fork
		}
		pause := time.Duration(0)
		if n%3 == 0 {
			pause = 100 * time.Millisecond
		}
		block = with(child(block, slot, 0, writes...), signature(n))
		show(slot, block, pause)
		chain = append(chain, block)
		if n > scriptFinality {
			confirmed, final := chain[n-scriptFinality/2], chain[n-scriptFinality]
			show(confirmed.Slot, status(confirmed, ledger.StatusConfirmed), 0)
			show(final.Slot, status(final, ledger.StatusFinalized), 0)
		}
	}
	return s, m
}

// scriptConfig takes a snapshot about every three seconds of the script, which takes some seven.
var scriptConfig = Config{Shards: 2, Retention: scriptRetention, SnapshotInterval: 3 * time.Second}

// followScript follows the script on a disk and returns the node, which is stopped, and what Run returned. The node is nil
// where the directory could not be opened.
func followScript(t *testing.T, s *rerun, disk vfs.FS) (*subject, error) {
	c, err := tryOnDisk(disk, scriptConfig)
	if err != nil {
		return nil, err
	}
	defer c.Dir.Close()
	return afterScript(startSource(t, s, c))
}

// afterScript stops a node when it has had time to follow the script, or when it has ended.
func afterScript(n *subject) (*subject, error) {
	select {
	case <-time.After(scriptTakes):
	case <-n.ended:
	}
	return n, n.stop()
}

// fault is one thing that may befall a disk.
type fault struct {
	name  string
	plan  vfstest.Plan
	share float64 // of what was not synced that a crash leaves; -1: no crash, the disk was only full
}

func faults() []fault {
	// These are the calls that a full disk may refuse.
	const takesSpace = vfstest.KindCreate | vfstest.KindMkdirAll | vfstest.KindWriteAt | vfstest.KindPreallocate |
		vfstest.KindRename | vfstest.KindSync | vfstest.KindSyncDir
	return []fault{
		{"EIO", vfstest.Plan{Fault: vfstest.Fail, Err: syscall.EIO, LoseOnSyncFailure: true}, 0},
		{"ENOSPC", vfstest.Plan{Fault: vfstest.Fail, Err: syscall.ENOSPC, Kinds: takesSpace, LoseOnSyncFailure: true}, -1},
		{"short write", vfstest.Plan{Fault: vfstest.Short, Kinds: takesSpace}, -1},
		{"crash, nothing more", vfstest.Plan{Fault: vfstest.Crash}, 0},
		{"crash, half", vfstest.Plan{Fault: vfstest.Crash}, 0.5},
		{"crash, all", vfstest.Plan{Fault: vfstest.Crash}, 1},
	}
}

// failEveryCall repeats a run of the script with a failure at every single disk call, in every way, looks at what was shown and
// what the disk holds, and has the node go on: to the same end as if nothing had been. run may end early where the disk fails;
// the node is nil where it never began.
// It tries a sample of the calls, another one each time.
func failEveryCall(t *testing.T, run func(t *testing.T, s *rerun, disk vfs.FS) (*subject, error)) {
	total := 0
	bubbletest.Test(t, func(t *testing.T) {
		_, disk := faultyDisk()
		s, m := scripted()
		n, err := run(t, s, disk)
		must(t, err)
		must(t, rightHead(m, n.Head(), m.version()))
		total = disk.Calls()
	})
	step, _ := strconv.Atoi(os.Getenv("LEDGERD_CRASH_ALL")) // 6, as in make crash: each call fails in one of the ways
	stride := sample(max(1, step), total/2, total/2)
	first := rand.IntN(stride)
	t.Logf("%d disk calls; every %d. call is tried, the first %d later", total, stride, first)
	for i, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s, m := scripted() // a model remembers what it was asked
			for call, hit := 1+(i+first)%stride, true; hit; call += stride {
				bubbletest.Test(t, func(t *testing.T) {
					var err error
					hit, err = failCall(t, m, f, call, func(disk vfs.FS) (*subject, error) { return run(t, s, disk) })
					if err != nil {
						t.Fatalf("call %d: %v", call, err)
					}
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

// failCall reports whether there was such a call.
func failCall(t *testing.T, m *model, f fault, call int, run func(disk vfs.FS) (*subject, error)) (hit bool, err error) {
	memory := vfstest.NewMemory()
	f.plan.Call = call
	disk := vfstest.NewFaulty(memory, f.plan)
	n, err := run(disk)
	if !disk.Hit() {
		return false, err
	}
	// After a sync that failed nothing goes on.
	syncFailed := slices.ContainsFunc(disk.Trace(), func(c vfstest.Call) bool {
		return c.Kind&(vfstest.KindSync|vfstest.KindSyncDir) != 0 && c.Err != nil
	})
	switch {
	case f.share >= 0:
		memory = memory.Crash(f.share, uint64(call))
	case err == nil && !syncFailed:
		if err := rightHead(m, n.Head(), m.version()); err != nil {
			return true, fmt.Errorf("a disk that was full once holds up the node for ever: %w", err)
		}
	}
	var newest ledger.Version
	if n != nil {
		for _, p := range n.published {
			newest = p.Head.Tips[ledger.Processed].Version
			if err := rightHead(m, p.Head, 0); err != nil {
				return true, fmt.Errorf("published: %w", err)
			}
		}
	}
	head, err := heldBy(t, memory)
	if err == nil {
		err = rightHead(m, head, newest)
	}
	if err != nil {
		return true, fmt.Errorf("the disk after the failure: %w", err)
	}
	if n, err = run(memory); err == nil {
		err = rightHead(m, n.Head(), m.version())
	}
	if err != nil {
		return true, fmt.Errorf("the node does not go on: %w", err)
	}
	if head, err = heldBy(t, memory); err == nil {
		err = rightHead(m, head, m.version())
	}
	return true, err
}

// rightHead holds what a node or a disk shows against the model: it must be something the model saw, not
// older than what was seen.
func rightHead(m *model, head *ledger.Head, newest ledger.Version) error {
	switch {
	case head == nil:
		return errors.New("it shows nothing")
	case newest == 0 && !head.HasBlock:
		return nil
	}
	version := head.Tips[ledger.Processed].Version
	want, ok := m.points[version]
	switch {
	case version < newest:
		return fmt.Errorf("version %d was published, the disk holds %d", newest, version)
	case !ok:
		return fmt.Errorf("the disk holds version %d, in the middle of what one event led to", version)
	case head.Tips != want.tips:
		return fmt.Errorf("version %d stands at %+v, want %+v", version, head.Tips, want.tips)
	}
	if got, want := head.StateHash.String(), m.records[version-1].world.hash(); got != want {
		return fmt.Errorf("version %d: state hash %s, want %s", version, got, want)
	}
	return nil
}

// F1, F9, F10, F11, F12, F13, F14, F16, F17: TestEveryDiskCallMayFail is of a node that is alone: after each failure its disk holds every block that was ever
// published, whole.
func TestEveryDiskCallMayFail(t *testing.T) {
	failEveryCall(t, followScript)
}

// writesScript starts a member that follows the script to its end and writes it into a shared log, and returns the model too.
func writesScript(t *testing.T, l *sharedLedger) (clusterNode, *model) {
	t.Helper()
	s, m := scripted()
	w := startMember(t, l, s, Config{Shards: 2, Retention: scriptRetention})
	w.mustLead()
	pause(scriptTakes)
	return w, m
}

// F1, F9, F10, F13, F16, F17: TestEveryDiskCallOfAFollowerMayFail is of a replica: whatever a failure leaves, a start goes on with the shared log.
func TestEveryDiskCallOfAFollowerMayFail(t *testing.T) {
	var commits [][]string
	bubbletest.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		w, _ := writesScript(t, l)
		w.mustStop()
		commits = l.commits
	})
	failEveryCall(t, func(t *testing.T, _ *rerun, disk vfs.FS) (*subject, error) {
		l := newSharedLedger()
		l.commits = commits
		c, err := tryOnDisk(disk, scriptConfig)
		if err != nil {
			return nil, err
		}
		defer c.Dir.Close()
		n, err := tryMember(t, l, nil, c)
		if err != nil {
			return nil, err
		}
		return afterScript(n.subject)
	})
}
