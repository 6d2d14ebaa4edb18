package wal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// life is a log's life as a test lives it on a disk that may fail: a script of commits with
// rotations, a prune, a restart and a clean end.
type life struct {
	c         Config
	script    [][]*ledger.Record
	committed int // commits of the script that Commit returned nil for
	pruned    ledger.Version
	pause     time.Duration   // after each commit
	heal      func()          // makes space; nil: what finds none fails
	memory    *vfstest.Memory // the disk without its faults; nil: what is kept aside is not looked at
}

// again does something again, after healing, as long as it finds no space.
func (v *life) again(do func() error) error {
	for range 20 {
		err := do()
		if v.heal == nil || !errors.Is(err, ErrNoSpace) {
			return err
		}
		v.heal()
	}
	return errors.New("no space again and again")
}

// follow opens the log, begins its next segment and commits what it does not hold yet of the first n commits.
func (v *life) follow(n int) (l *Log, err error) {
	var at int
	err = v.again(func() error {
		var got [][]*ledger.Record
		l, err = Open(context.Background(), v.c, 0, collect(&got))
		if err == nil {
			at, err = v.check(got)
		}
		return err
	})
	if err == nil {
		err = v.again(l.begin)
	}
	if err != nil {
		return nil, err
	}
	end := l.End()
	if end.Torn() && v.memory != nil {
		kept, err := v.memory.ReadFile(end.segments[len(end.segments)-1].name + brokenSuffix)
		if err != nil || int64(len(kept)) != end.torn || kept[0] == 0 {
			return nil, errors.Join(fmt.Errorf("%w: %x was kept aside, %v", errWrong, kept, err), l.Close())
		}
	}
	v.committed = max(v.committed, at)
	for _, c := range v.script[at:max(at, n)] {
		if err := v.again(func() error { return l.Commit(c) }); err != nil {
			return nil, errors.Join(err, checkFailed(l, c), l.Close())
		}
		v.committed++
		time.Sleep(v.pause)
	}
	return l, nil
}

// errWrong is a log that does not do what it should.
var errWrong = errors.New("the log did something else than it should")

// checkFailed checks that nothing can be done any more with a log of which a commit failed.
func checkFailed(l *Log, c []*ledger.Record) error {
	for what, call := range map[string]func() error{
		"Commit": func() error { return l.Commit(c) },
		"Sync":   l.Sync,
		"Prune":  func() error { return l.Prune(100) },
		"Err":    l.Err,
	} {
		if err := call(); !errors.Is(err, ErrFailed) {
			return fmt.Errorf("%w: %s: %w", errWrong, what, err)
		}
	}
	<-l.Failed()
	return nil
}

// check holds what was replayed against the script, and returns where in it the log ends. Only
// what a prune allowed to go may be missing at the front.
func (v *life) check(got [][]*ledger.Record) (int, error) {
	if len(got) == 0 {
		return 0, nil
	}
	first := got[0][0].Version
	i := slices.IndexFunc(v.script, func(c []*ledger.Record) bool { return c[0].Version == first })
	if i < 0 || !isPrefix(got, v.script[i:]) || first > max(v.pruned, 1) {
		return 0, fmt.Errorf("%d commits from record %d on are not part of the script, which was pruned below %d", len(got), first, v.pruned)
	}
	return i + len(got), nil
}

// wantHeld fails unless a disk holds a part of the script, and at least so many commits of it.
func (v *life) wantHeld(t *testing.T, what string, disk vfs.FS, least int) {
	t.Helper()
	got, _, err := replayAll(disk, testDir, 0)
	at, wrong := v.check(got)
	ledgertest.MustHold(t, err == nil && wrong == nil && at >= least, "%s: %d commits, want %d: %v, %v", what, at, least, err, wrong)
}

// live runs the whole life until something fails. A log that finds no space to be closed is opened again.
func (v *life) live() error {
	half := len(v.script) / 2
	for _, n := range []int{half, len(v.script), 0} {
		l, err := v.follow(n)
		if err != nil {
			return err
		}
		if n == half {
			v.pruned = v.script[half-2][0].Version
			err = v.again(func() error { return l.Prune(v.pruned) })
		}
		err = errors.Join(err, l.Close())
		if err != nil && (v.heal == nil || !errors.Is(err, ErrNoSpace)) {
			return err
		}
	}
	return nil
}

func newLife(policy Policy) *life {
	return &life{c: Config{Dir: testDir, SegmentBytes: 3 << 10, Policy: policy, Logger: quiet}, script: script(12, 2)}
}

// crashes is what may be left of what was not synced.
var crashes = []struct {
	share float64
	seed  uint64
}{{0, 0}, {0.5, 1}, {0.5, 2}, {0.5, 3}, {1, 0}}

// F1, F2, F11, F12: a log crashes at every call, and its recovery does again. With a pause after each commit
// newest is replaced between commits, and must claim no more than is durable.
func TestEveryAcknowledgedCommitSurvivesACrashAtEveryCall(t *testing.T) {
	for _, tt := range []struct {
		policy Policy
		pause  time.Duration
	}{
		{Always, 0}, {Off, 0}, {Policy(time.Hour), 0}, {Always, time.Second}, {Off, time.Second}, {Policy(3 * time.Second), time.Second},
	} {
		plans := map[string]vfstest.Plan{fmt.Sprintf("%v, pause %v", tt.policy, tt.pause): {Fault: vfstest.Crash}}
		vfstest.EveryCall(t, 9, vfstest.NewMemory(), plans, func(t *testing.T, memory *vfstest.Memory, disk *vfstest.Faulty, plan vfstest.Plan) {
			synctest.Test(t, func(t *testing.T) { crashAt(t, memory, disk, plan.Call, tt.policy, tt.pause) })
		})
	}
}

// crashAt lives the life of a log on a disk that crashes at a call, and checks what that leaves.
func crashAt(t *testing.T, memory *vfstest.Memory, disk *vfstest.Faulty, n int, policy Policy, pause time.Duration) {
	v := newLife(policy)
	v.c.FS, v.pause = disk, pause
	err := v.live()
	synctest.Wait()
	if !disk.Hit() {
		must(t, err)
		return
	}
	for _, crash := range crashes {
		what := fmt.Sprintf("crash at call %d (%v), share %v, seed %d", n, last(disk.Trace()), crash.share, crash.seed)
		least := v.committed
		if policy != Always && crash.share < 1 {
			least = 0
		}
		// With one picture of what is left, recovery itself crashes at every call.
		again := pause == 0 && (crash.seed == 1 || policy == Always && crash.seed == 0)
		recoverAfter(t, what, v, memory.Crash(crash.share, crash.seed), least, again)
	}
	// Where the process alone dies, what it did not sync is there still, and lost if the power fails after the restart.
	recoverAfter(t, fmt.Sprintf("death at call %d", n), v, memory.Clone(), v.committed, pause == 0 && policy == Always)
}

func last(calls []vfstest.Call) vfstest.Call { return calls[len(calls)-1] }

// recoverAfter starts on what a crash left, if need be crashing again at every call of the
// recovery, and checks that at least so many commits are there each time and that the rest can
// be committed.
func recoverAfter(t *testing.T, what string, v *life, left *vfstest.Memory, least int, crashAgain bool) {
	t.Helper()
	for n := 1; ; n++ {
		memory := left.Clone()
		plan := vfstest.Plan{Fault: vfstest.Crash, Kinds: vfstest.KindChange}
		if crashAgain {
			plan.Call = n
		}
		again := vfstest.NewFaulty(memory, plan)
		w := &life{c: v.c, script: v.script, pruned: v.pruned}
		w.c.FS = again
		l, err := w.follow(0)
		if again.Hit() {
			ledgertest.MustHold(t, l == nil, "%s: opened in spite of a crash", what)
			what := fmt.Sprintf("%s, after a crash at call %d of recovery (%v)", what, n, last(again.Trace()))
			v.wantHeld(t, what, memory.Crash(0.5, uint64(n)), least)
			continue
		}
		if err != nil || w.committed < least {
			t.Fatalf("%s: %d commits are left, %d were acknowledged: %v", what, w.committed, least, err)
		}
		w.wantHeld(t, what+", after a restart and a power cut", memory.Crash(0, 0), w.committed)
		again.Arm(vfstest.Plan{})
		commitAll(t, l, w.script[w.committed:])
		must(t, errors.Join(l.Sync(), l.Close()))
		w.wantHeld(t, what+", at the end", again, len(w.script))
		return
	}
}

// F16: what a sync failed to write looks as if it were on disk to the next process. Once that has shown it, it must be there.
func TestAFailedSyncIsNotMadeGoodByARestart(t *testing.T) {
	commits := script(4, 2)
	memory := vfstest.NewMemory()
	disk := vfstest.NewFaulty(memory, vfstest.Plan{})
	l, _ := open(t, config(disk))
	commitAll(t, l, commits[:3])
	disk.Arm(vfstest.Plan{Call: 1, Kinds: vfstest.KindSync, LoseOnSyncFailure: true})
	ledgertest.ErrorIs(t, l.Commit(commits[3]), ErrFailed, "Commit with a failing sync")
	disk.Arm(vfstest.Plan{})
	_, shown := open(t, config(disk))
	wantCommits(t, "the next process, of which the page cache still has the last", shown, commits)
	wantLog(t, "after a power cut", memory.Crash(0, 1), commits)
}
