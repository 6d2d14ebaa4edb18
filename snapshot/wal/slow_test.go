package wal

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestACommitWaitsForNoOtherWork lets one call of the work beside the commits take as long as enough commits to fill segments. They are synced by a
// timer meanwhile, and the race detector is a judge, too.
func TestACommitWaitsForNoOtherWork(t *testing.T) {
	commits := script(24, 2)
	prune := func(l *Log) error { return l.Prune(commits[8][0].Version) }
	for name, tt := range map[string]struct {
		slow vfstest.Call
		work func(l *Log) error
	}{
		"the sync of newest":                      {vfstest.Call{Kind: vfstest.KindSync, Name: testDir + "/newest.tmp"}, func(l *Log) error { l.saveDurable(); return l.Err() }},
		"the removal of a segment":                {vfstest.Call{Kind: vfstest.KindRemove, Name: segmentName(testDir, 1)}, prune},
		"the sync of the directory after removal": {vfstest.Call{Kind: vfstest.KindSyncDir, Name: testDir}, prune},
	} {
		memory := vfstest.NewMemory()
		disk := vfstest.NewFaulty(memory, vfstest.Plan{})
		c := config(disk)
		c.SegmentBytes, c.Policy = 3<<10, Policy(time.Millisecond)
		l, _ := open(t, c)
		commitAll(t, l, commits[:10])
		before := l.newestLocked().index
		began, release := make(chan struct{}), make(chan struct{})
		var waited atomic.Bool
		disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
			if c == tt.slow && !waited.Swap(true) {
				close(began)
				<-release
			}
		}})
		worked, committed := make(chan error, 1), make(chan error, 1)
		go func() { worked <- tt.work(l) }()
		<-began
		go func() {
			var err error
			for _, c := range commits[10:20] {
				err = errors.Join(err, l.Commit(c))
			}
			committed <- err
		}()
		select {
		case err := <-committed:
			ledgertest.Equal(t, err, nil, "%s: the commits meanwhile", name)
		case <-time.After(time.Minute):
			close(release)
			t.Fatalf("%s: a commit waits for it", name)
		}
		close(release)
		must(t, <-worked)
		go func() { worked <- prune(l) }()
		commitAll(t, l, commits[20:])
		must(t, errors.Join(<-worked, l.Sync()))
		checkStats(t, l)
		if got := l.newestLocked().index; got == before {
			t.Errorf("%s: no segment was begun after segment %d", name, before)
		}
		must(t, l.Close())
		got, _, err := replayAll(memory.Crash(0, 0), testDir, 0)
		if err != nil || len(got) < len(commits)-8 || !isPrefix(got, commits[len(commits)-len(got):]) {
			t.Errorf("%s: %d commits, %v", name, len(got), err)
		}
	}
}
