package wal

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// F4: a log that was cut at the end of a commit, long enough after the last of them, is refused: on what a process that was
// killed leaves, and on what a power cut leaves.
func TestALogCutBelowItsDurablePositionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, policy := range []Policy{Always, Policy(time.Second)} {
			disk := vfstest.NewMemory()
			c := config(disk)
			c.Policy = policy
			commits := script(9, 2)
			l, _ := open(t, c)
			commitAll(t, l, commits)
			time.Sleep(time.Duration(policy) + time.Second)
			synctest.Wait()
			for what, left := range map[string]*vfstest.Memory{"killed": disk.Crash(1, 0), "power cut": disk.Crash(0, 0)} {
				wantLog(t, what, left, commits)
				segments := segmentsOf(t, left)
				name := segments[len(segments)-1].name
				for _, e := range entriesOf(t, left) {
					if segmentName(testDir, e.Segment) != name {
						continue
					}
					cut := left.Clone()
					put(t, cut, name, contents(t, left, name)[:e.Offset])
					got, _, err := replayAll(cut, testDir, 0)
					var corrupt *CorruptError
					told := errors.As(err, &corrupt) && corrupt.Segment == name && strings.Contains(err.Error(), "records are missing")
					if !told || !isPrefix(got, commits) {
						t.Fatalf("%v, %s, cut at byte %d: %d commits, %v; want damage of %s", policy, what, e.Offset, len(got), err, name)
					}
				}
			}
			must(t, l.Close())
		}
	})
}

// TestADurablePositionThatFindsNoSpaceIsSavedLater, and what else fails ends the log.
func TestADurablePositionThatFindsNoSpaceIsSavedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := vfstest.NewMemory()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{})
		l, _ := open(t, config(disk))
		// pass lets the time of a save pass under a plan, and tells whether newest names the end of the log.
		pass := func(plan vfstest.Plan) bool {
			disk.Arm(plan)
			time.Sleep(saveEvery)
			synctest.Wait()
			n, err := readNewest(memory, testDir)
			must(t, err)
			return n.durable == l.Stats().Position
		}
		commitAll(t, l, [][]*ledger.Record{commitOf(1, 2, 1)})
		if pass(vfstest.Plan{Call: 1, Kinds: vfstest.KindCreate, Err: syscall.ENOSPC}) || !disk.Hit() || l.Err() != nil {
			t.Fatalf("without space: hit %v, %v", disk.Hit(), l.Err())
		}
		ledgertest.MustHold(t, pass(vfstest.Plan{}), "with space again it was not saved")
		if pass(vfstest.Plan{}); disk.Calls() != 0 {
			t.Fatalf("%d calls with nothing to save: %v", disk.Calls(), disk.Trace())
		}
		commitAll(t, l, [][]*ledger.Record{commitOf(3, 2, 1)})
		pass(vfstest.Plan{Call: 1, Kinds: vfstest.KindSync})
		if err := l.Close(); !errors.Is(err, ErrFailed) || !errors.Is(l.Err(), ErrFailed) {
			t.Fatalf("a newest that cannot be synced: %v, want %v", err, ErrFailed)
		}
		disk.Arm(vfstest.Plan{})
		l, _ = open(t, config(disk))
		commitAll(t, l, [][]*ledger.Record{commitOf(5, 2, 1)})
		disk.Arm(vfstest.Plan{Call: 1, Kinds: vfstest.KindWriteAt})
		ledgertest.ErrorIs(t, l.Commit(commitOf(7, 2, 1)), ErrFailed, "a commit that cannot be written, before the one before is named in newest")
		if pass(vfstest.Plan{}); disk.Calls() != 0 {
			t.Errorf("a log that failed is written: %v", disk.Trace())
		}
		ledgertest.ErrorIs(t, l.Close(), ErrFailed, "Close")
	})
}
