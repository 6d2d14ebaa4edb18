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

// scriptStates are what the script writes after the first of them is there. The last pruning removes history too.
func scriptStates() []*state {
	return []*state{testState(20, 0, 6, 2), testState(30, 12, 5, 2), testState(40, 22, 5, 1), testState(50, 32, 4, 1)}
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
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, vfs.TemporarySuffix) {
			return nil, fmt.Errorf("%s is left over", name)
		}
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

// scriptDisk returns a disk with the first snapshot, and how many calls the rest of the script
// makes of it.
func scriptDisk(t *testing.T, states []*state) (disk *vfstest.Memory, calls int) {
	t.Helper()
	disk = vfstest.NewMemory()
	write(t, openTestStore(t, disk), states[0])
	counting := vfstest.NewFaulty(disk.Clone(), vfstest.Plan{})
	if written := script(counting, states[1:]); len(written) != len(states)-1 {
		t.Fatalf("without a fault %d snapshots were written", len(written))
	}
	return disk, counting.Calls()
}

// stride is 1, and n in a short run, which tries one in n of all there is.
func stride(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

func TestAnyFailedCallLeavesWholeSnapshots(t *testing.T) {
	states := scriptStates()
	disk, calls := scriptDisk(t, states)
	plans := map[string]vfstest.Plan{
		"EIO":           {Err: syscall.EIO, LoseOnSyncFailure: true},
		"ENOSPC":        {Err: syscall.ENOSPC},
		"short write":   {Fault: vfstest.Short, Kinds: vfstest.KindWriteAt},
		"EIO for good":  {Err: syscall.EIO, Lasting: true, LoseOnSyncFailure: true},
		"full for good": {Fault: vfstest.Short, Lasting: true, Kinds: vfstest.KindCreate | vfstest.KindWriteAt},
		"nothing goes":  {Err: syscall.EIO, Lasting: true, Kinds: vfstest.KindRemove},
	}
	for what, plan := range plans {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for plan.Call = 1; plan.Call <= calls; plan.Call += stride(4) {
				disk := disk.Clone()
				faulty := vfstest.NewFaulty(disk, plan)
				written := append(states[:1:1], script(faulty, states[1:])...)
				if !faulty.Hit() && plan.Kinds != 0 {
					break // there are fewer calls of these kinds
				}
				if d := atSyncs(faulty); d != "" {
					t.Fatalf("at call %d of %d: %s", plan.Call, calls, d)
				}
				for name, after := range map[string]*vfstest.Memory{"a restart": disk, "a power cut": disk.Crash(0, 1)} {
					if err := checkRecovered(after, states, written); err != nil {
						t.Fatalf("at call %d of %d, then %s: %v", plan.Call, calls, name, err)
					}
				}
			}
		})
	}
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

func TestACrashAtAnyCallLeavesWholeSnapshots(t *testing.T) {
	t.Parallel()
	states := scriptStates()
	disk, calls := scriptDisk(t, states)
	for call := calls + 1; call > 0; call -= stride(4) { // the first crash is after the last call
		disk := disk.Clone()
		written := append(states[:1:1], script(vfstest.NewFaulty(disk, vfstest.Plan{Call: call, Fault: vfstest.Crash}), states[1:])...)
		for seed, share := range []float64{0, 0.5, 0.5, 0.5, 0.5, 0.5, 1} {
			if err := checkRecovered(disk.Crash(share, uint64(seed)), states, written); err != nil {
				t.Fatalf("crash at call %d of %d, share %v, seed %d: %v", call, calls, share, seed, err)
			}
		}
	}
}

func TestAFileIsNotTouchedAfterItFailed(t *testing.T) {
	good, _ := chunkOf(testAccount(2))
	good.raw = 10
	for _, kind := range []vfstest.Kind{vfstest.KindWriteAt, vfstest.KindSync} {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		must(t, disk.MkdirAll(testDir))
		w, err := createFile(disk, testDir, "x", snapshotMagic)
		must(t, err)
		w.unsynced = syncEveryBytes // the next chunk is synced
		disk.Arm(vfstest.Plan{Call: 1, Kinds: kind})
		for n := range 3 {
			if err := w.append(good, []byte("a frame")); !errors.Is(err, syscall.EIO) {
				t.Errorf("%v failed: append %d: %v, want %v", kind, n, err, syscall.EIO)
			}
		}
		if err := w.finish(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v failed: finish: %v, want %v", kind, err, syscall.EIO)
		}
		if calls := disk.Trace(); calls[len(calls)-1].Err == nil {
			t.Errorf("%v failed, and then: %v", kind, calls)
		}
		w.discard()
	}
}

// writeGarbled writes a state on a copy of a disk that changes a file behind its name before that is read back.
func writeGarbled(t *testing.T, disk *vfstest.Memory, st *state, suffix string, change func(b []byte) []byte) (*vfstest.Memory, error) {
	t.Helper()
	disk = disk.Clone()
	changed := false
	faulty := vfstest.NewFaulty(disk, vfstest.Plan{Before: func(c vfstest.Call) {
		if changed || c.Kind != vfstest.KindOpen || !strings.HasSuffix(c.Name, suffix+vfs.TemporarySuffix) {
			return
		}
		changed = true
		b, err := disk.ReadFile(c.Name)
		if err == nil {
			err = disk.WriteFile(c.Name, change(b))
		}
		if err != nil {
			t.Error(err)
		}
	}})
	_, err := openTestStore(t, faulty).Write(t.Context(), st.meta, st.parts(1), st.blocks, Pace{})
	return disk, err
}

// TestWhatTheDiskGarblesGetsNoName flips each byte of the files before they are read back.
func TestWhatTheDiskGarblesGetsNoName(t *testing.T) {
	disk := vfstest.NewMemory()
	before := testState(20, 0, 6, 2)
	write(t, openTestStore(t, disk), before)
	for _, suffix := range []string{stateSuffix, historySuffix} {
		for at, size := 0, 1; at < size; at += 7 {
			after, err := writeGarbled(t, disk, testState(30, 0, 5, 3), suffix, func(b []byte) []byte {
				size = len(b)
				b[at] ^= 4
				return b
			})
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d garbled: err = %v, want damage", at, err)
			}
			if whole, err := loadAll(openTestStore(t, after), []*state{before}); err != nil || len(whole) != 1 || len(after.Paths()) != 2 {
				t.Errorf("byte %d garbled: %d snapshots, %v, in %v", at, len(whole), err, after.Paths())
			}
		}
	}
}

// TestAnotherSnapshotInPlaceOfTheOneWrittenIsTold lets what is read back be whole, and of the same accounts.
func TestAnotherSnapshotInPlaceOfTheOneWrittenIsTold(t *testing.T) {
	other, others := testState(20, 0, 6, 2), vfstest.NewMemory()
	other.meta.BaseSlot++
	w := write(t, openTestStore(t, others), other)
	_, err := writeGarbled(t, vfstest.NewMemory(), testState(20, 0, 6, 2), stateSuffix, func([]byte) []byte { return content(t, others, w.Name) })
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "it is not what was written") {
		t.Errorf("Write: %v, want damage", err)
	}
}
