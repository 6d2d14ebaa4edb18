package wal

import (
	"errors"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

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
