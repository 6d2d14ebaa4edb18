package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

const (
	scriptBlocks   = 200
	scriptFinality = 12 // blocks above the newest finalized one
)

// rerun is a source that shows the same events each time, from the finalized block on where it
// is told one. It stops for a moment now and then, so that commits are of several sizes.
type rerun struct {
	events []ledger.Event
	pauses map[int]time.Duration // before the event at an index
}

func (s *rerun) Info() ledger.SourceInfo { return live() }
func (s *rerun) Peers() int              { return 1 }

func (s *rerun) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	for i, e := range s.events {
		if from != nil && slotOf(e) <= from.Slot {
			continue
		}
		if d := s.pauses[i]; d > 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := emit(ctx, e); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func slotOf(e ledger.Event) ledger.Slot {
	switch e := e.(type) {
	case *ledger.Block:
		return e.Slot
	case *ledger.SlotStatus:
		return e.Slot
	case *ledger.BaseState:
		return e.Slot
	}
	panic("no such event")
}

// scripted returns a run of 200 blocks with a fork of three in its middle, statuses, accounts
// that open and close, and the model that followed it.
func scripted() (*rerun, *model) {
	s := &rerun{pauses: map[int]time.Duration{}}
	m := newModel(live())
	show := func(e ledger.Event) {
		m.event(e)
		s.events = append(s.events, e)
	}
	block := rootBlock(100, lamports(key(1), 5), lamports(key(50), 7), holding(key(51), key(52), key(53), 9))
	show(block)
	chain := []*ledger.Block{block}
	for n := 1; n < scriptBlocks; n++ {
		slot := block.Slot + 1 + ledger.Slot(n%7/6) // now and then a skipped slot
		writes := []ledger.AccountWrite{lamports(key(n%20), ledger.Lamports(n+1)), lamports(key(20+n%5), ledger.Lamports(n%2))}
		if n == scriptBlocks/2 {
			at := block
			for i := range 3 {
				at = with(child(at, at.Slot+1, 1, lamports(key(1+i), 1), lamports(key(90), 4)), signature(9000+i))
				show(at)
			}
			slot = at.Slot + 1 // its parent is the block before the fork
		}
		if n%3 == 0 {
			s.pauses[len(s.events)] = 100 * time.Millisecond
		}
		block = with(child(block, slot, 0, writes...), signature(n))
		show(block)
		chain = append(chain, block)
		if n > scriptFinality {
			show(status(chain[n-scriptFinality/2], ledger.StatusConfirmed))
			show(status(chain[n-scriptFinality], ledger.StatusFinalized))
		}
	}
	return s, m
}

// scriptConfig takes a snapshot about every three seconds of the script, which takes some seven.
func scriptConfig(t *testing.T, disk vfs.FS, shards int) (Config, error) {
	dir, err := datadir.OpenOn(disk, "data")
	if err != nil {
		return Config{}, err
	}
	t.Cleanup(func() { dir.Close() })
	return Config{
		Dir: dir, Shards: shards, Retention: sequencer.Retention{Slots: 60, Bytes: 1 << 30},
		SnapshotInterval: 3 * time.Second, SegmentBytes: 16 << 10,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, nil
}

// seenOf follows the script on a disk for a while and returns the newest version that was ever
// published, and what Run returned. Whatever it could not do, it does not matter why.
func seenOf(t *testing.T, s *rerun, disk vfs.FS, shards int) (newest ledger.Version, err error) {
	c, err := scriptConfig(t, disk, shards)
	if err != nil {
		return 0, err
	}
	defer c.Dir.Close()
	c.Source = s
	c.OnPublish = func(p *ledger.Publication) { newest = max(newest, p.Head.Tips[ledger.Processed].Version) }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := New(c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = e.Run(ctx)
	}()
	select {
	case <-time.After(20 * time.Second):
		cancel()
		<-ended
	case <-ended:
	}
	return newest, err
}

// heldBy returns what the disk alone holds.
func heldBy(t *testing.T, disk vfs.FS) (*ledger.Head, error) {
	c, err := scriptConfig(t, disk, 3)
	if err != nil {
		return nil, err
	}
	defer c.Dir.Close()
	ctx, cancel := context.WithCancel(t.Context())
	e := New(c)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	synctest.Wait()
	cancel()
	if err := <-ended; err != nil {
		return nil, err
	}
	return e.Head(), nil
}

// fault is one thing that may befall a disk.
type fault struct {
	name  string
	plan  vfstest.Plan
	share float64 // of what was not synced that a crash leaves; -1: no crash
}

// takesSpace are the calls that a full disk may refuse.
const takesSpace = vfstest.KindCreate | vfstest.KindMkdirAll | vfstest.KindWriteAt | vfstest.KindPreallocate | vfstest.KindRename | vfstest.KindSync | vfstest.KindSyncDir

func faults() []fault {
	return []fault{
		{"EIO", vfstest.Plan{Fault: vfstest.Fail, Err: syscall.EIO, LoseOnSyncFailure: true}, 0},
		{"ENOSPC", vfstest.Plan{Fault: vfstest.Fail, Err: syscall.ENOSPC, Kinds: takesSpace, LoseOnSyncFailure: true}, -1},
		{"short write", vfstest.Plan{Fault: vfstest.Short, Kinds: takesSpace}, -1},
		{"crash, nothing more", vfstest.Plan{Fault: vfstest.Crash}, 0},
		{"crash, half", vfstest.Plan{Fault: vfstest.Crash}, 0.5},
		{"crash, all", vfstest.Plan{Fault: vfstest.Crash}, 1},
	}
}

// TestEveryDiskCallMayFail repeats one run with a failure at every single disk call, in every
// way, and looks at what the disk holds after: every block that was ever published, whole. Then
// the node goes on to the same end as if nothing had been.
//
// It tries a sample, less of one in a short run; LEDGERD_CRASH_ALL=1 tries all.
func TestEveryDiskCallMayFail(t *testing.T) {
	s, m := scripted()
	if m.stopped != "" {
		t.Fatal(m.stopped)
	}
	total := 0
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		if _, err := seenOf(t, s, disk, 2); err != nil {
			t.Fatal(err)
		}
		total = disk.Calls()
	})
	stride := max(1, total/25)
	if testing.Short() {
		stride = total / 8
	}
	if os.Getenv("LEDGERD_CRASH_ALL") != "" {
		stride = 1
	}
	t.Logf("%d disk calls, %d versions; every %d. call is tried", total, m.version(), stride)
	for i, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s, m := scripted() // a model remembers what it was asked
			for call, hit := 1+i%stride, true; hit; call += stride {
				bubble.Test(t, func(t *testing.T) { hit = failCall(t, s, m, f, call) })
				if t.Failed() {
					t.Fatalf("call %d", call)
				}
			}
		})
	}
}

// failCall reports whether there was such a call.
func failCall(t *testing.T, s *rerun, m *model, f fault, call int) (hit bool) {
	memory := vfstest.NewMemory()
	f.plan.Call = call
	disk := vfstest.NewFaulty(memory, f.plan)
	newest, err := seenOf(t, s, disk, 2)
	if !disk.Hit() {
		return false
	}
	if f.share >= 0 {
		memory = memory.Crash(f.share, uint64(call))
	}
	if (f.plan.Fault == vfstest.Short || f.plan.Err == syscall.ENOSPC) && err == nil && newest < m.version() && !syncFailed(disk) {
		t.Errorf("a disk that was full once held up the node for ever: it got to version %d of %d after %v", newest, m.version(), disk.Trace()[max(0, len(disk.Trace())-4):])
	}
	head, err := heldBy(t, memory)
	if err != nil {
		t.Errorf("the disk cannot be read after: %v", err)
		return true
	}
	if err := rightHead(m, head, newest); err != nil {
		t.Error(err)
		return true
	}
	// The node goes on where it was.
	if _, err := seenOf(t, s, memory, 1); err != nil {
		t.Errorf("the node does not go on: %v", err)
		return true
	}
	if head, err = heldBy(t, memory); err != nil {
		t.Errorf("the disk cannot be read at the end: %v", err)
	} else if err := rightHead(m, head, m.version()); err != nil {
		t.Errorf("at the end: %v", err)
	}
	return true
}

// syncFailed reports whether what failed was a sync, after which nothing goes on.
func syncFailed(disk *vfstest.Faulty) bool {
	return slices.ContainsFunc(disk.Trace(), func(c vfstest.Call) bool {
		return c.Kind&(vfstest.KindSync|vfstest.KindSyncDir) != 0 && c.Err != nil
	})
}

// rightHead holds what a disk shows against the model: it must be something the model saw, not
// older than what was seen.
func rightHead(m *model, head *ledger.Head, newest ledger.Version) error {
	if newest == 0 && !head.HasBlock {
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
	if got, want := head.StateHash.String(), m.records[version-1].stateHash(); got != want {
		return fmt.Errorf("version %d: state hash %s, want %s", version, got, want)
	}
	return nil
}
