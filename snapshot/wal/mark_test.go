package wal

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestALogCutBelowTheMarkIsRefused cuts a log at the end of each of its commits, and in between, long enough
// after the last of them: on what a process that was killed leaves, and on what a power cut leaves.
func TestALogCutBelowTheMarkIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, policy := range []Policy{{}, {Mode: Interval, Interval: time.Second}} {
			disk := vfstest.NewMemory()
			c := config(disk)
			c.Policy = policy
			commits := script(9, 2)
			l, _ := open(t, c)
			commitAll(t, l, commits)
			time.Sleep(policy.Interval + time.Second)
			synctest.Wait()
			for what, left := range map[string]*vfstest.Memory{"killed": disk.Crash(1, 0), "power cut": disk.Crash(0, 0)} {
				got, end, err := replayAll(left, testDir, 0)
				if err != nil || end.Torn() {
					t.Fatalf("%v, %s: %v, %v", policy, what, end, err)
				}
				wantCommits(t, what, got, commits)
				newest := end.segments[len(end.segments)-1]
				for _, e := range entriesOf(t, left) {
					if e.Segment != newest.index {
						continue
					}
					cut := left.Clone()
					put(t, cut, newest.name, contents(t, left, newest.name)[:e.Offset])
					got, _, err := replayAll(cut, testDir, 0)
					var corrupt *CorruptError
					if !errors.As(err, &corrupt) || corrupt.Segment != newest.name || !isPrefix(got, commits) {
						t.Fatalf("%v, %s, cut at byte %d: %d commits, %v; want damage of %s", policy, what, e.Offset, len(got), err, newest.name)
					}
					if !strings.Contains(err.Error(), "records are missing") {
						t.Fatalf("the sentence does not say what is wrong: %v", err)
					}
				}
			}
			must(t, l.Close())
		}
	})
}

// TestAMarkThatFindsNoSpaceIsWrittenLater, and what else fails ends the log.
func TestAMarkThatFindsNoSpaceIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		l, _ := open(t, config(disk))
		pass := func() { time.Sleep(markEvery); synctest.Wait() }
		told := func() Position {
			t.Helper()
			n, err := readNewest(disk, testDir)
			must(t, err)
			return n.durable
		}
		commitAll(t, l, [][]*ledger.Record{commitOf(1, 2, 1)})
		disk.Arm(vfstest.Plan{Call: 1, Kinds: vfstest.KindCreate, Err: syscall.ENOSPC})
		pass()
		if _, durable := reach(l); !disk.Hit() || l.Err() != nil || told() >= durable.position {
			t.Fatalf("without space: hit %v, %v, the mark is at %d of %d", disk.Hit(), l.Err(), told(), durable.position)
		}
		pass()
		if _, durable := reach(l); told() != durable.position {
			t.Fatalf("with space again the mark is at %d, want %d", told(), durable.position)
		}
		disk.Arm(vfstest.Plan{})
		pass()
		if n := disk.Calls(); n != 0 {
			t.Fatalf("%d calls with nothing to mark: %v", n, disk.Trace())
		}
		commitAll(t, l, [][]*ledger.Record{commitOf(3, 2, 1)})
		disk.Arm(vfstest.Plan{Call: 1, Kinds: vfstest.KindSync})
		pass()
		if err := l.Close(); !errors.Is(err, ErrFailed) || !errors.Is(l.Err(), ErrFailed) {
			t.Fatalf("a mark that cannot be synced: %v, want %v", err, ErrFailed)
		}
	})
}
