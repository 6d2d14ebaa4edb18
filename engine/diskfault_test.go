package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
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
	scriptFinality = 12               // blocks above the newest finalized one
	scriptTakes    = 20 * time.Second // more than it does
)

var scriptRetention = sequencer.Retention{Slots: 60, Bytes: 1 << 30}

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
		time.Sleep(s.pauses[i])
		if err := emit(ctx, e); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// slotOf returns the slot of a block or a status.
func slotOf(e ledger.Event) ledger.Slot {
	if b, ok := e.(*ledger.Block); ok {
		return b.Slot
	}
	return e.(*ledger.SlotStatus).Slot
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
func scriptConfig(disk vfs.FS, shards int) (Config, error) {
	dir, err := datadir.OpenOn(disk, "data")
	return Config{
		Dir: dir, Shards: shards, Retention: scriptRetention,
		SnapshotInterval: 3 * time.Second, SegmentBytes: 16 << 10,
	}, err
}

// followScript follows the script on a disk and returns the node, which is stopped, and what Run returned. The node is nil
// where the directory could not be opened.
func followScript(t *testing.T, s *rerun, disk vfs.FS, shards int) (*subject, error) {
	c, err := scriptConfig(disk, shards)
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

// trial is a run of a node that failEveryCall repeats.
type trial struct {
	// run runs a node on a disk. It may end early where the disk fails, and the node is nil where it never began.
	run func(t *testing.T, disk vfs.FS) (*subject, error)
	// shown holds what a node showed, and what its disk holds, against what it should.
	shown func(t *testing.T, n *subject, disk vfs.FS) error
	// end holds where a node ended against where it should.
	end func(n *subject) error
}

// failEveryCall repeats a run with a failure at every single disk call, in every way, looks at what was shown and what the
// disk holds, and has the node go on: to the same end as if nothing had been.
//
// It tries a sample, less of one in a short run; LEDGERD_CRASH_ALL=1 tries all.
func failEveryCall(t *testing.T, begin func() trial) {
	total := 0
	bubble.Test(t, func(t *testing.T) {
		_, disk := faultyDisk()
		r := begin()
		n, err := r.run(t, disk)
		if err == nil {
			err = r.end(n)
		}
		noErr(t, err)
		total = disk.Calls()
	})
	stride := max(1, total/25)
	if testing.Short() {
		stride = total / 8
	}
	if os.Getenv("LEDGERD_CRASH_ALL") != "" {
		stride = 1
	}
	t.Logf("%d disk calls; every %d. call is tried", total, stride)
	for i, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := begin()
			for call, hit := 1+i%stride, true; hit; call += stride {
				bubble.Test(t, func(t *testing.T) {
					var err error
					if hit, err = r.failCall(t, f, call); err != nil {
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
func (r *trial) failCall(t *testing.T, f fault, call int) (hit bool, err error) {
	memory := vfstest.NewMemory()
	f.plan.Call = call
	disk := vfstest.NewFaulty(memory, f.plan)
	n, err := r.run(t, disk)
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
		if err := r.end(n); err != nil {
			return true, fmt.Errorf("a disk that was full once holds up the node for ever: %w", err)
		}
	}
	if err := r.shown(t, n, memory); err != nil {
		return true, err
	}
	again, err := r.run(t, memory)
	if err != nil {
		return true, fmt.Errorf("the node does not go on: %w", err)
	}
	if err := errors.Join(r.end(again), r.shown(t, again, memory)); err != nil {
		return true, fmt.Errorf("at the end: %w", err)
	}
	return true, nil
}

// TestEveryDiskCallMayFail is of a node that is alone: after each failure its disk holds every block that was ever
// published, whole.
func TestEveryDiskCallMayFail(t *testing.T) {
	failEveryCall(t, func() trial {
		s, m := scripted() // a model remembers what it was asked
		return trial{
			run: func(t *testing.T, disk vfs.FS) (*subject, error) { return followScript(t, s, disk, 2) },
			shown: func(t *testing.T, n *subject, disk vfs.FS) error {
				var newest ledger.Version
				if n != nil {
					for _, p := range n.published {
						newest = max(newest, p.Head.Tips[ledger.Processed].Version)
					}
				}
				head, err := heldBy(t, disk)
				if err != nil {
					return err
				}
				return rightHead(m, head, newest)
			},
			end: func(n *subject) error { return rightHead(m, n.Head(), m.version()) },
		}
	})
}

// rightHead holds what a disk shows against the model: it must be something the model saw, not
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
	if got, want := head.StateHash.String(), m.records[version-1].stateHash(); got != want {
		return fmt.Errorf("version %d: state hash %s, want %s", version, got, want)
	}
	return nil
}

// TestEveryDiskCallOfAFollowerMayFail is of a replica: whatever a failure leaves, a start goes on with the shared log,
// and nothing was shown that is not in it.
func TestEveryDiskCallOfAFollowerMayFail(t *testing.T) {
	var commits [][][]byte
	var want *ledger.Head
	bubble.Test(t, func(t *testing.T) {
		l := newSharedLedger()
		s, _ := scripted()
		w := startMember(t, l, s, Config{Shards: 2})
		l.grant(w.member)
		pause(scriptTakes)
		want, commits = w.Head(), l.commits
		w.mustStop()
	})
	failEveryCall(t, func() trial {
		var l *sharedLedger // of the bubble of a run
		return trial{
			run: func(t *testing.T, disk vfs.FS) (*subject, error) {
				l = newSharedLedger()
				l.commits = commits
				c, err := scriptConfig(disk, 2)
				if err != nil {
					return nil, err
				}
				defer c.Dir.Close()
				n, err := tryMember(t, l, nil, c)
				if err != nil {
					return nil, err
				}
				return afterScript(n.subject)
			},
			shown: func(t *testing.T, n *subject, _ vfs.FS) error {
				if n == nil {
					return nil
				}
				return l.leadsTo(n.published)
			},
			end: func(n *subject) error { return sameEnd(n.Head(), want) },
		}
	})
}
