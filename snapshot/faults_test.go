package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"

	"ledgerd/engine/ledger/ledgertest"
)

// script writes two snapshots and prunes, as a node does. It goes on after an error as a node
// would, with the next snapshot, and returns the states whose Write succeeded.
func script(disk vfs.FS, states []*state) (written []*state) {
	s, err := OpenStore(disk, testDir, quiet)
	if err != nil {
		return nil
	}
	for _, st := range states {
		if _, err := s.Write(context.Background(), st.meta, st.parts(1), st.blocks, Pace{}); err == nil {
			written = append(written, st)
		}
		_, _ = s.Prune(context.Background(), 2, Pace{})
	}
	return written
}

// checkRecovered opens a store as after a restart. Every snapshot listed must be one of the
// states, whole, unless its Write never returned without an error; the newest written one must be
// there, and the two newest whole ones unless fewer were ever written. Then it writes
// another one and prunes: no fault may be in the way of that.
func checkRecovered(disk vfs.FS, states, written []*state) error {
	s, err := OpenStore(disk, testDir, quiet)
	if err != nil {
		return fmt.Errorf("OpenStore: %w", err)
	}
	whole, err := loadAll(s, states)
	if err != nil {
		return err
	}
	for _, st := range written[max(0, len(written)-2):] {
		if !slices.Contains(whole, st) {
			return fmt.Errorf("the snapshot at slot %d is gone", st.meta.Slot)
		}
	}
	next := testState(60, 32, 4, 1)
	if _, err := s.Write(context.Background(), next.meta, next.parts(1), next.blocks, Pace{}); err != nil {
		return fmt.Errorf("Write after the restart: %w", err)
	}
	if _, err := s.Prune(context.Background(), 2, Pace{}); err != nil {
		return fmt.Errorf("Prune after the restart: %w", err)
	}
	left, err := loadAll(s, append(states, next))
	if err != nil {
		return err
	}
	if len(left) != min(2, len(whole)+1) {
		return fmt.Errorf("%d snapshots are left after the restart, of %d", len(left), len(whole)+1)
	}
	return nil
}

// loadAll loads every snapshot listed: each must be whole and one of the states.
func loadAll(s *Store, states []*state) (whole []*state, err error) {
	names, err := s.names()
	if err != nil || slices.ContainsFunc(names, isTemporary) {
		return nil, fmt.Errorf("%v are left over: %w", names, err)
	}
	infos, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range infos {
		snap, err := s.Open(i)
		if err != nil {
			return nil, err
		}
		got, err := load(snap, 2)
		if err != nil {
			return nil, err
		}
		n := slices.IndexFunc(states, func(st *state) bool { return st.meta.Slot == i.Slot })
		if d := got.differs(states[n]); d != "" {
			return nil, fmt.Errorf("%s: %s", i.Name, d)
		}
		whole = append(whole, states[n])
	}
	return whole, nil
}

// F9, F10, F11, F12, F14, F16, F17: whatever call fails, or is the last one before a crash, whole snapshots are left.
func TestAnyFailedCallLeavesWholeSnapshots(t *testing.T) {
	states := []*state{testState(20, 0, 6, 2), testState(30, 12, 5, 2), testState(40, 22, 5, 1), testState(50, 32, 4, 1)} // the last pruning removes history too
	first := vfstest.NewMemory()
	write(t, openTestStore(t, first), states[0])
	vfstest.EveryCall(t, 17, first, map[string]vfstest.Plan{
		"EIO":           {Err: syscall.EIO, LoseOnSyncFailure: true},
		"ENOSPC":        {Err: syscall.ENOSPC},
		"short write":   {Fault: vfstest.Short, Kinds: vfstest.KindWriteAt},
		"EIO for good":  {Err: syscall.EIO, Lasting: true, LoseOnSyncFailure: true},
		"full for good": {Fault: vfstest.Short, Lasting: true, Kinds: vfstest.KindCreate | vfstest.KindWriteAt},
		"nothing goes":  {Err: syscall.EIO, Lasting: true, Kinds: vfstest.KindRemove},
		"a crash":       {Fault: vfstest.Crash},
	}, func(t *testing.T, disk *vfstest.Memory, faulty *vfstest.Faulty, plan vfstest.Plan) {
		written := append(states[:1:1], script(faulty, states[1:])...)
		ledgertest.MustHold(t, faulty.Hit() || len(written) == len(states), "without a fault %d snapshots were written", len(written))
		if d := atSyncs(faulty); d != "" {
			t.Fatalf("at call %d: %s", plan.Call, d)
		}
		left := []*vfstest.Memory{disk, disk.Crash(0, 1)}
		for seed := uint64(1); seed <= 3 && plan.Fault == vfstest.Crash; seed++ {
			left = append(left, disk.Crash(0.5, seed))
		}
		for n, after := range left {
			ledgertest.Mustf(t, checkRecovered(after, states, written), "at call %d, disk %d left of it", plan.Call, n)
		}
		for seed := range uint64(3) { // the process alone had died, or a call had failed, before the snapshot that checkRecovered wrote
			cut := disk.Crash(0.5*float64(seed), seed)
			whole, err := loadAll(openTestStore(t, cut), append(states, testState(60, 32, 4, 1)))
			if err != nil || len(whole) < 2 {
				t.Fatalf("at call %d, after a restart and a power cut: %d snapshots, %v", plan.Call, len(whole), err)
			}
		}
	})
}

// atSyncs returns which file was written or synced again after a sync of it failed.
func atSyncs(disk *vfstest.Faulty) string {
	failed := map[string]bool{}
	for _, c := range disk.Trace() {
		switch c.Kind {
		case vfstest.KindCreate:
			if c.Err == nil {
				delete(failed, c.Name)
			}
		case vfstest.KindWriteAt, vfstest.KindSync:
			if failed[c.Name] {
				return fmt.Sprintf("%s after a failed one", c)
			}
			failed[c.Name] = c.Err != nil
		}
	}
	return ""
}

// F16: after a write or a sync that failed a file is not touched.
func TestAFileIsNotTouchedAfterItFailed(t *testing.T) {
	good, _ := chunkOf(testAccount(2))
	for _, kind := range []vfstest.Kind{vfstest.KindWriteAt, vfstest.KindSync} {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		must(t, disk.MkdirAll(testDir))
		w, err := createFile(disk, testDir, "x", snapshotMagic)
		must(t, err)
		w.unsynced = syncEveryBytes // the next chunk is synced
		disk.Arm(vfstest.Plan{Call: 1, Kinds: kind})
		for range 3 {
			appended, finished := w.append(good, []byte("a frame")), w.finish()
			calls := disk.Trace()
			if !errors.Is(appended, syscall.EIO) || !errors.Is(finished, syscall.EIO) || calls[len(calls)-1].Err == nil {
				t.Errorf("%v failed: %v, %v, and then: %v", kind, appended, finished, calls)
			}
		}
		w.discard()
	}
}

// TestWhatTheDiskGarblesGetsNoName flips bytes of the files before they are read back, and puts another snapshot, of the same
// accounts, in place of the one that was written.
func TestWhatTheDiskGarblesGetsNoName(t *testing.T) {
	first, before, next := vfstest.NewMemory(), testState(20, 0, 6, 2), testState(30, 0, 5, 3)
	write(t, openTestStore(t, first), before)
	garbled := func(what, suffix, says string, change func(b []byte) []byte) {
		t.Helper()
		disk := first.Clone()
		disarmed := false
		faulty := vfstest.NewFaulty(disk, vfstest.Plan{Before: func(c vfstest.Call) {
			if disarmed || c.Kind != vfstest.KindOpen || !strings.HasSuffix(c.Name, suffix+vfs.TemporarySuffix) {
				return
			}
			disarmed = true
			b, err := disk.ReadFile(c.Name)
			must(t, err)
			must(t, disk.WriteFile(c.Name, change(b)))
		}})
		_, err := openTestStore(t, faulty).Write(t.Context(), next.meta, next.parts(1), next.blocks, Pace{})
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: err = %v, want damage that says %q", what, err, says)
		}
		if whole, err := loadAll(openTestStore(t, disk), []*state{before}); err != nil || len(whole) != 1 || len(disk.Paths()) != 2 {
			t.Errorf("%s: %d snapshots, %v, in %v", what, len(whole), err, disk.Paths())
		}
	}
	for _, suffix := range []string{stateSuffix, historySuffix} {
		for at, size := 0, 1; at < size; at += 7 {
			garbled(fmt.Sprintf("byte %d of %s", at, suffix), suffix, "", func(b []byte) []byte {
				size = len(b)
				b[at] ^= 4
				return b
			})
		}
	}
	other, others := *next, first.Clone()
	other.meta.BaseSlot++
	w := write(t, openTestStore(t, others), &other)
	garbled("another", stateSuffix, "it is not what was written", func([]byte) []byte { return content(t, others, w.Name) })
}
