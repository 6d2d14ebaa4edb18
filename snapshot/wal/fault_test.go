package wal

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// opening is every kind of call that opens a file or a directory.
const opening = vfstest.KindCreate | vfstest.KindOpen | vfstest.KindOpenWrite | vfstest.KindList | vfstest.KindMkdirAll | vfstest.KindSyncDir

// torn returns a disk with the first n commits of a life, the last of which a crash left in part. Of seven the newest segment has one that
// is whole and not known durable.
func torn(t *testing.T, n int) *vfstest.Memory {
	disk := recorded(t, newLife(Always).script[:n], newLife(Always).c.SegmentBytes, false)
	entries := entriesOf(t, disk)
	last := entries[len(entries)-1]
	name := segmentName(testDir, last.Segment)
	put(t, disk, name, contents(t, disk, name)[:last.Offset+40])
	return disk
}

// F13, F16, F17: whatever call fails, once or until there is space again, the log goes on when there is space again, or it has failed
// and is not touched any more. A log that finds no space to settle is settled again.
func TestAFaultAtEveryCallHasThePromisedOutcome(t *testing.T) {
	noSpace, writing := vfstest.Plan{Err: syscall.ENOSPC}, vfstest.KindChange&^(vfstest.KindSync|vfstest.KindSyncDir)
	for _, policy := range []Policy{Always, Off} {
		for begun, plans := range map[*vfstest.Memory]map[string]vfstest.Plan{
			vfstest.NewMemory(): {
				"EIO":         {},
				"EIO, lost":   {LoseOnSyncFailure: true},
				"ENOSPC":      noSpace,
				"full":        {Fault: vfstest.Short, Lasting: true, Kinds: writing},
				"short write": {Fault: vfstest.Short},
				"EMFILE":      {Err: syscall.EMFILE, Kinds: opening},
			},
			torn(t, 7): {"ENOSPC, torn": noSpace},
			torn(t, 1): {"ENOSPC, torn, nothing before it": noSpace},
		} {
			vfstest.EveryCall(t, 3, begun, plans, func(t *testing.T, memory *vfstest.Memory, disk *vfstest.Faulty, plan vfstest.Plan) {
				synctest.Test(t, func(t *testing.T) { // no timer runs out meanwhile
					v := newLife(policy)
					v.c.FS, v.memory, v.heal = disk, memory, disk.Heal
					if err := v.live(); disk.Hit() {
						checkOutcome(t, fmt.Sprintf("%v, fault at call %d", policy, plan.Call), v, err, memory, disk.Trace(), plan.LoseOnSyncFailure)
					} else {
						must(t, err)
					}
				})
			})
		}
	}
}

// checkOutcome checks that the log either went on as if nothing had happened, or
// failed and then touched nothing; and that nothing acknowledged is lost or doubled.
func checkOutcome(t *testing.T, what string, v *life, err error, memory *vfstest.Memory, trace []vfstest.Call, lost bool) {
	t.Helper()
	fault := slices.IndexFunc(trace, func(c vfstest.Call) bool {
		return c.Err != nil && c.Err != io.EOF && !errors.Is(c.Err, syscall.ENOENT)
	})
	what += fmt.Sprintf(" (%v)", trace[fault])
	for _, c := range trace[fault+1:] {
		ledgertest.Holds(t, !errors.Is(err, ErrFailed) || c.Kind&vfstest.KindChange == 0, "%s: the log failed, and then: %v", what, c)
	}
	kind, cause := trace[fault].Kind, trace[fault].Err
	syncing := kind&(vfstest.KindSync|vfstest.KindSyncDir) != 0 && !vfs.IsOutOfFiles(cause)
	reading := kind&(vfstest.KindReadAt|vfstest.KindOpen|vfstest.KindList) != 0
	switch {
	case errors.Is(err, errWrong):
		t.Errorf("%s: %v", what, err)
	case syncing && err == nil:
		t.Errorf("%s: the log went on", what)
	case reading && errors.Is(cause, syscall.EIO) && (!errors.Is(err, cause) || errors.Is(err, ErrCorrupt)):
		t.Errorf("%s: what could not be read was taken for the end of the log, or for damage: %v", what, err)
	case !syncing && !errors.Is(cause, syscall.EIO) && kind&(vfstest.KindChange|vfstest.KindOpenWrite) != 0 && err != nil:
		t.Errorf("%s: the log did not go on when there was space again: %v", what, err)
	}
	for _, crash := range crashes {
		least := v.committed
		if v.c.Policy != Always && (crash.share < 1 || lost) {
			least = 0
		}
		v.wantHeld(t, what+", after a crash", memory.Crash(crash.share, crash.seed), least)
	}
}

// TestACommitThatCannotBeCutOffSealsItsSegment: the truncation after a short write fails too. Even a whole commit that lies
// after the end was never acknowledged, and is ignored.
func TestACommitThatCannotBeCutOffSealsItsSegment(t *testing.T) {
	commits := script(8, 2)
	for name, fault := range map[string]vfstest.Fault{
		"part of the commit stays": vfstest.Short, "nothing of it stays": vfstest.Fail, "all of it stays": vfstest.Fail,
	} {
		for _, policy := range []Policy{Always, Off} {
			what := name + ", " + policy.String()
			memory := vfstest.NewMemory()
			disk := vfstest.NewFaulty(memory, vfstest.Plan{})
			c := config(disk)
			c.Policy = policy
			l, _ := open(t, c)
			commitAll(t, l, commits[:4])
			disk.Arm(vfstest.Plan{Fault: fault, Err: syscall.ENOSPC, Call: 1, Kinds: vfstest.KindWriteAt | vfstest.KindTruncate, Lasting: true})
			for range 2 {
				ledgertest.ErrorIs(t, l.Commit(commits[4]), ErrNoSpace, "%s: Commit", what)
			}
			if name == "all of it stays" {
				var e encoded
				err := e.encode(commits[4], l.state.version+1)
				g := l.newestLocked()
				e.stamp(commits[4], g.index, l.state, l.durable.position)
				must(t, errors.Join(err, memory.Overwrite(g.name, g.size, e.buf)))
			} else if policy == Always {
				wantLog(t, what+", a crash before the next segment", memory.Crash(0, 0), commits[:4])
			}
			disk.Heal()
			commitAll(t, l, commits[4:])
			ledgertest.Equal(t, l.Stats().Segments, 2, "%s: segments", what)
			must(t, l.Close())
			wantLog(t, what, memory.Crash(0, 0), commits)
		}
	}
}

// TestASegmentIsNotGoneOnWithOnceTheNextWasBegun: the next one, which says where this one ends, may
// be on disk although making it failed.
func TestASegmentIsNotGoneOnWithOnceTheNextWasBegun(t *testing.T) {
	kinds := vfstest.KindCreate | vfstest.KindPreallocate | vfstest.KindWriteAt | vfstest.KindRename
	for n := 1; ; n++ {
		memory := vfstest.NewMemory()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{})
		l, _ := open(t, config(disk))
		commits := [][]*ledger.Record{commitOf(1, 1, 10), commitOf(2, 1, 60), commitOf(2, 1, 1), commitOf(3, 1, 1)}
		commitAll(t, l, commits[:1])
		disk.Arm(vfstest.Plan{Call: n, Kinds: kinds, Err: syscall.ENOSPC, Lasting: true})
		err := l.Commit(commits[1])
		if !disk.Hit() {
			return
		}
		ledgertest.ErrorIs(t, err, ErrNoSpace, "failure of call %d: Commit", n)
		// What was made aside holds space that others need; only a whole file may wait for its name.
		failed := slices.IndexFunc(disk.Trace(), func(c vfstest.Call) bool { return errors.Is(c.Err, syscall.ENOSPC) })
		names, err := memory.List(testDir)
		if err != nil || disk.Trace()[failed].Kind != vfstest.KindRename && slices.ContainsFunc(names, isTemporary) {
			t.Errorf("failure of call %d (%v): the directory holds %v, %v", n, disk.Trace()[failed], names, err)
		}
		disk.Heal()
		commitAll(t, l, commits[2:])
		for _, crash := range crashes {
			wantLog(t, fmt.Sprintf("failure of call %d", n), memory.Crash(crash.share, crash.seed), [][]*ledger.Record{commits[0], commits[2], commits[3]})
		}
		must(t, l.Close())
	}
}

// F18: under an interval a commit does not wait for the disk. A slow sync is warned of, and takes as long as it takes.
func TestIntervalSyncsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		var warned strings.Builder
		var synced []time.Duration
		c := config(disk)
		c.Policy, c.Logger = Policy(time.Second), logger(&warned)
		c.OnSync = func(d time.Duration) { synced = append(synced, d) }
		l, _ := open(t, c)
		disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c.Kind == vfstest.KindSync && len(synced) == 0 {
				time.Sleep(slowSync + 1)
			}
		}})
		commits := script(4, 2)
		commitAll(t, l, commits[:2])
		checkStats(t, l)
		if newest, durable := reach(l); durable.version != 0 || newest.version != 3 || l.Stats().DurableSlot != 0 {
			t.Errorf("before the interval: durable up to record %d of %d, %+v", durable.version, newest.version, l.Stats())
		}
		for range 2 { // the second time there is nothing to sync
			time.Sleep(2500 * time.Millisecond)
			synctest.Wait()
			_, durable := reach(l)
			if durable.version != 3 || l.Stats().DurableSlot != commits[1][1].Slot {
				t.Errorf("after the interval: durable up to record %d, %+v", durable.version, l.Stats())
			}
			if len(synced) != 1 || synced[0] != slowSync+1 || strings.Count(warned.String(), "\n") != 1 {
				t.Errorf("after the interval: synced %v, warnings %q", synced, warned.String())
			}
		}
		disk.Arm(vfstest.Plan{Call: 1, Kinds: vfstest.KindSync})
		commitAll(t, l, commits[2:3])
		<-l.Failed()
		if err := errors.Join(l.Commit(commits[3]), l.Close()); strings.Count(err.Error(), ErrFailed.Error()) != 2 {
			t.Errorf("Commit and Close after the sync in between failed: %v, want twice %v", err, ErrFailed)
		}
	})
}
