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
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

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
	v := ledger.Version(1)
	for i, commit := range commits {
		for range commit {
			got, _, err := replayAll(c.FS, c.Dir, v)
			if err != nil {
				t.Fatalf("Replay from %d: %v", v, err)
			}
			wantCommits(t, "from the middle", got, commits[i:])
			v++
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
		checkStats(t, l)
		commitAll(t, l, [][]*ledger.Record{commitOf(newest+1, 1, 2)})
		checkStats(t, l)
		must(t, l.Close())
		for from, want := range map[ledger.Version]error{min(below, newest): nil, segments[0].first - 1: ErrMissing} {
			if from == 0 {
				continue // from the oldest
			}
			if _, _, err := replayAll(disk, testDir, from); !errors.Is(err, want) {
				t.Errorf("Replay from %d after Prune(%d): %v, want %v", from, below, err, want)
			}
		}
	}
}

func TestReplayBeyondTheEndIsRefused(t *testing.T) {
	disk := recorded(t, script(3, 2), 64<<10, true) // records 1 to 6
	for from, want := range map[ledger.Version]error{6: nil, 7: nil, 8: ErrMissing, 1000: ErrMissing} {
		if _, _, err := replayAll(disk, testDir, from); !errors.Is(err, want) {
			t.Errorf("Replay from %d: %v, want %v", from, err, want)
		}
	}
	for from, want := range map[ledger.Version]error{0: nil, 1: nil, 2: ErrMissing} {
		if _, _, err := replayAll(vfstest.NewMemory(), testDir, from); !errors.Is(err, want) {
			t.Errorf("Replay of an empty log from %d: %v, want %v", from, err, want)
		}
	}
}

func TestEmptySegmentsDoNotPileUp(t *testing.T) {
	disk := vfstest.NewMemory()
	commits := script(6, 2)
	for i := range 20 {
		l, got := open(t, config(disk))
		if want := 3 * min(i/11, 1); len(got) != want {
			t.Fatalf("after %d restarts: %d commits, want %d", i, len(got), want)
		}
		if i == 10 {
			commitAll(t, l, commits[:3])
		}
		if i%2 == 0 {
			must(t, l.Close())
		}
	}
	if n := len(segmentsOf(t, disk)); n != 2 {
		t.Errorf("%d segments; want one with records and the newest", n)
	}
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
	disk := vfstest.NewMemory()
	l, _ := open(t, config(disk))
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
	if err := l.Commit(nil); err != nil {
		t.Errorf("Commit of nothing: %v", err)
	}
	commitAll(t, l, [][]*ledger.Record{commitOf(3, 2, 1)})
	must(t, l.Close())
	if err := l.Commit(commitOf(5, 1, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit after Close: %v, want %v", err, ErrClosed)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestReplayEndsWhenItIsTold(t *testing.T) {
	disk := recorded(t, script(300, 40), 256<<10, true)
	stop := errors.New("enough")
	visits := 0
	_, err := Replay(t.Context(), disk, testDir, 0, func([]Entry) error {
		if visits++; visits == 5 {
			return stop
		}
		return nil
	}, nil)
	if err != stop || visits != 5 {
		t.Errorf("Replay = %v after %d visits, want %v after 5", err, visits, stop)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Replay(ctx, disk, testDir, 0, func([]Entry) error {
		cancel()
		return nil
	}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Replay = %v, want %v", err, context.Canceled)
	}
	type progress struct{ read, total int64 }
	var seen []progress
	if _, err := Replay(t.Context(), disk, testDir, 0, func([]Entry) error { return nil }, func(read, total int64) {
		seen = append(seen, progress{read, total})
	}); err != nil {
		t.Fatal(err)
	}
	for i, p := range seen {
		if i > 0 && p.read < seen[i-1].read || p.total != seen[0].total || p.read > p.total {
			t.Fatalf("progress %v", seen)
		}
	}
	if n := len(seen); n < 3 || seen[n-1].read != seen[n-1].total {
		t.Errorf("progress %v, want it to end at the total", seen)
	}
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
