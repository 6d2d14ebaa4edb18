package wal

import (
	"errors"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// beginAt begins a log with the records of a commit.
func beginAt(c Config, commit []*ledger.Record) error {
	l, err := Create(c, commit[0].Version, 42)
	if err != nil {
		return err
	}
	return errors.Join(l.Commit(commit), l.Close())
}

// TestBegunLogIsRemovedAtAnyMoment crashes while a log is begun, and while what that left is removed, at
// every call. Either the log holds its commit, or another can begin in its place.
func TestBegunLogIsRemovedAtAnyMoment(t *testing.T) {
	one, other := commitOf(50, 1, 3), commitOf(70, 1, 3)
	for n := 1; ; n++ {
		memory := vfstest.NewMemory()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{Call: n, Fault: vfstest.Crash})
		if err := beginAt(config(disk), one); !disk.Hit() {
			must(t, err)
			return
		}
		for _, crash := range crashes {
			left := memory.Crash(crash.share, crash.seed)
			got, _, err := replayAll(left, testDir, 0)
			ledgertest.Mustf(t, err, "crash at call %d", n)
			for again, hit := 1, len(got) == 0; hit; again++ {
				begun := left.Clone()
				disk := vfstest.NewFaulty(begun, vfstest.Plan{Call: again, Fault: vfstest.Crash})
				err := Remove(disk, testDir)
				if hit = disk.Hit(); hit {
					begun = begun.Crash(crash.share, crash.seed)
					if got, _, err := replayAll(begun, testDir, 0); err != nil || len(got) > 0 {
						t.Fatalf("crash at call %d, then at call %d of the removal: %d commits, %v", n, again, len(got), err)
					}
					err = Remove(begun, testDir)
				}
				if err == nil {
					err = beginAt(config(begun), other)
				}
				if got, _, replayErr := replayAll(begun, testDir, 70); err != nil || replayErr != nil || len(got) != 1 {
					t.Fatalf("crash at call %d: %v; another log holds %d commits, %v", n, err, len(got), replayErr)
				}
			}
		}
	}
}

// TestASettledLogTakesNoSpaceBeforeItsFirstCommit settles on a disk without a page to spare.
func TestASettledLogTakesNoSpaceBeforeItsFirstCommit(t *testing.T) {
	disk := recorded(t, script(14, 2), 3<<10, true)
	l, _ := openUnsettled(t, config(disk))
	end := l.End()
	disk.SetCapacity(disk.UsedBytes())
	_, err := l.Parts()
	ledgertest.ErrorSays(t, err, "has not been settled", "the files of a log that is not settled")
	must(t, l.Settle())
	if s := l.Stats(); s.Position != end.position || s.DurableSlot != end.Slot() || s.Segments == 0 {
		t.Errorf("settled at %+v, want %v", s, end)
	}
	must(t, errors.Join(l.Sync(), l.Prune(end.Version())))
	next := commitOf(end.Version()+1, 2, 1)
	ledgertest.ErrorIs(t, l.Commit(next), ErrNoSpace, "a commit without space")
	disk.SetCapacity(0)
	must(t, errors.Join(l.Commit(next), l.Close()))
	l, _ = openUnsettled(t, config(disk))
	must(t, l.Commit(commitOf(end.Version()+3, 1, 1))) // which settles the log
	must(t, l.Close())
	if _, again, err := replayAll(disk, testDir, 0); err != nil || again.Version() != end.Version()+3 {
		t.Errorf("the log ends with record %d, %v", again.Version(), err)
	}
	_, err = Create(config(disk), 1, 0)
	ledgertest.ErrorSays(t, err, "holds a log already", "beginning a log in place of another")
	l, _ = openUnsettled(t, config(disk))
	must(t, l.Close()) // one that was never settled
}
