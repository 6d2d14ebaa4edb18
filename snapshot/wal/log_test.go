package wal

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsCommittedIsReplayed(t *testing.T) {
	c := Config{FS: vfs.Disk{}, Dir: t.TempDir() + "/log", SegmentBytes: 4 << 10, Logger: quiet}
	commits := script(40, 3)
	for restart := range 4 {
		l, got := open(t, c)
		wantCommits(t, "after a restart", got, commits[:restart*10])
		commitAll(t, l, commits[restart*10:restart*10+10])
		newest := commits[restart*10+9]
		if last, durable := reach(l); last != durable || last.version != newest[len(newest)-1].Version {
			t.Errorf("after restart %d: durable up to record %d of %d", restart, durable.version, last.version)
		}
		checkStats(t, l)
		must(t, l.Close())
	}
	got, end, err := replayAll(c.FS, c.Dir, 0)
	must(t, err)
	if !reflect.DeepEqual(got, commits) {
		t.Errorf("at the end: %d commits, want %d, or their records differ", len(got), len(commits))
	}
	if end.Torn() || end.Version() != 79 || end.durable != end.position {
		t.Errorf("the end is %v, durable up to %d of %d; want it after record 79, all durable", end, end.durable, end.position)
	}
	for i, commit := range commits {
		for _, r := range commit {
			got, _, err := replayAll(c.FS, c.Dir, r.Version)
			must(t, err)
			wantCommits(t, "from the middle", got, commits[i:])
		}
	}
	for dir, end := range map[string]ledger.Version{c.Dir: 79, testDir: 0} { // testDir has no log
		for from, want := range map[ledger.Version]error{end + 1: nil, end + 2: ErrMissing, end + 1000: ErrMissing} {
			if got, _, err := replayAll(c.FS, dir, from); !errors.Is(err, want) || len(got) > 0 {
				t.Errorf("reading %s from %d: %d commits, %v, want %v", dir, from, len(got), err, want)
			}
		}
	}
}

func TestPruneKeepsWhatHoldsTheVersion(t *testing.T) {
	commits := script(20, 2)
	newest := commits[19][len(commits[19])-1].Version
	for below := ledger.Version(0); below <= newest+2; below++ {
		disk := vfstest.NewMemory()
		c := config(disk)
		c.SegmentBytes = 3 << 10
		l, _ := open(t, c)
		commitAll(t, l, commits)
		must(t, l.Prune(below))
		segments := segmentsOf(t, disk)
		if first := segments[0].first; below > 0 && first > below || len(segments) > 1 && segments[1].first <= below {
			t.Errorf("Prune(%d) left %d segments, which begin with record %d", below, len(segments), first)
		}
		commitAll(t, l, [][]*ledger.Record{commitOf(newest+1, 1, 2)})
		checkStats(t, l)
		must(t, l.Close())
		for from, want := range map[ledger.Version]error{min(below, newest): nil, segments[0].first - 1: ErrMissing} {
			if _, _, err := replayAll(disk, testDir, from); from > 0 && !errors.Is(err, want) {
				t.Errorf("reading from %d after Prune(%d): %v, want %v", from, below, err, want)
			}
		}
	}
}

func TestEmptySegmentsDoNotPileUp(t *testing.T) {
	disk := vfstest.NewMemory()
	commits := script(3, 2)
	for i := range 20 {
		l, got := open(t, config(disk))
		wantCommits(t, "after some restarts", got, commits[:3*min(i/11, 1)])
		if i == 10 {
			commitAll(t, l, commits)
		}
		if i%2 == 0 {
			must(t, l.Close())
		}
	}
	ledgertest.Equal(t, len(segmentsOf(t, disk)), 2, "segments: one with records and the newest")
}

func TestACommitLargerThanASegment(t *testing.T) {
	disk := vfstest.NewMemory()
	l, _ := open(t, config(disk))
	commits := [][]*ledger.Record{commitOf(1, 1, 1), commitOf(2, 3, 400), commitOf(5, 1, 1), commitOf(6, 3, 30000), commitOf(9, 1, 1)}
	commitAll(t, l, commits)
	must(t, l.Close())
	wantLog(t, "large commits", disk, commits)
}

func TestCommitRefusesAnotherVersion(t *testing.T) {
	l, _ := open(t, config(vfstest.NewMemory()))
	commitAll(t, l, [][]*ledger.Record{commitOf(1, 2, 1)})
	for name, records := range map[string][]*ledger.Record{
		"again":  commitOf(2, 1, 1),
		"skips":  commitOf(4, 1, 1),
		"a hole": {record(3, 1), record(5, 1)},
	} {
		if err := l.Commit(records); err == nil || errors.Is(err, ErrFailed) || errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: Commit: %v, want a refusal", name, err)
		}
	}
	must(t, l.Commit(nil))
	must(t, l.Commit(commitOf(3, 2, 1)))
	must(t, l.Close())
	ledgertest.ErrorIs(t, l.Commit(commitOf(5, 1, 1)), ErrClosed, "Commit after Close")
	must(t, l.Close())
}

func TestOpenEndsWhenItIsTold(t *testing.T) {
	disk := recorded(t, script(300, 40), 256<<10, true)
	stop := errors.New("enough")
	ctx, cancel := context.WithCancel(t.Context())
	for visit, want := range map[int]error{5: stop, 1: context.Canceled, 300: nil} {
		visits := 0
		reads, total := []int64{0}, int64(0)
		c := Config{FS: disk, Dir: testDir, OnRead: func(read, of int64) {
			if read < reads[len(reads)-1] || read > of || total != 0 && of != total {
				t.Errorf("progress %d of %d after %v", read, of, reads)
			}
			reads, total = append(reads, read), of
		}}
		_, err := Open(ctx, c, 0, func([]Entry) error {
			switch visits++; {
			case visits == visit && want == stop:
				return stop
			case visits == visit && want != nil:
				cancel()
			}
			return nil
		})
		if !errors.Is(err, want) || want == stop && (err != stop || visits != visit) {
			t.Errorf("Open = %v after %d visits, want %v after %d", err, visits, want, visit)
		}
		if want == nil && (visits != visit || len(reads) < 4 || reads[len(reads)-1] != total) {
			t.Errorf("%d visits, progress %v, want it to end at the total", visits, reads)
		}
		if want == context.Canceled {
			ctx, cancel = context.WithCancel(t.Context())
		}
	}
	cancel()
}

func TestCommitPruneAndStatsRunAtOnce(t *testing.T) {
	disk := vfstest.NewMemory()
	c := config(disk)
	c.Policy = Policy{Mode: Interval, Interval: time.Millisecond}
	l, _ := open(t, c)
	commits := script(200, 2)
	var pruning sync.WaitGroup
	var stop atomic.Bool
	pruning.Go(func() {
		for !stop.Load() {
			_, durable := reach(l)
			if err := l.Prune(durable.version); err != nil {
				t.Error(err)
				return
			}
		}
	})
	commitAll(t, l, commits)
	stop.Store(true)
	pruning.Wait()
	must(t, l.Close())
	got, _, err := replayAll(disk, testDir, 0)
	if err != nil || !isPrefix(got, commits[len(commits)-len(got):]) {
		t.Errorf("%d commits, %v; want the last of the script", len(got), err)
	}
}
