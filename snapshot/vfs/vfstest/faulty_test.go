package vfstest

import (
	"errors"
	"maps"
	"slices"
	"syscall"
	"testing"

	"ledgerd/snapshot/vfs"
)

// everyCall makes one call of each kind of a disk with the file dir/file, and returns what each returned.
func everyCall(d vfs.FS, file vfs.File) map[Kind]error {
	first := func(_ any, err error) error { return err }
	got := map[Kind]error{
		KindMkdirAll:    d.MkdirAll("dir/dir"),
		KindCreate:      first(d.Create("dir/new")),
		KindOpen:        first(d.Open("dir/file")),
		KindOpenWrite:   first(d.OpenWrite("dir/file")),
		KindReadAt:      first(file.ReadAt(make([]byte, 1), 0)),
		KindWriteAt:     first(file.WriteAt([]byte("abcdefgh"), 5)),
		KindTruncate:    file.Truncate(20),
		KindPreallocate: file.Preallocate(30),
		KindSync:        file.Sync(),
		KindList:        first(d.List("dir")),
		KindSyncDir:     d.SyncDir("dir"),
		KindLock:        first(d.Lock("LOCK")),
		KindFreeBytes:   first(d.FreeBytes("dir")),
	}
	got[KindRename] = d.Rename("dir/file", "dir/other")
	got[KindRemove] = d.Remove("dir/other")
	return got
}

// faultyDisk returns a disk with a file of ten bytes, which is open. The plan counts from then on.
func faultyDisk(t *testing.T, plan Plan) (*Memory, *Faulty, vfs.File) {
	t.Helper()
	m := NewMemory()
	must(t, m.MkdirAll("dir"))
	f := NewFaulty(m, Plan{})
	file := written(t, f, "dir/file", "0123456789")
	f.Arm(plan)
	return m, f, file
}

// TestAFaultStrikesTheCallOfItsKind and no other, and nothing of that call reaches the disk.
func TestAFaultStrikesTheCallOfItsKind(t *testing.T) {
	odd := errors.New("an odd error")
	for _, plan := range []struct {
		Plan
		want error
	}{{Plan{}, syscall.EIO}, {Plan{Err: odd}, odd}, {Plan{Fault: Short}, syscall.ENOSPC}, {Plan{Fault: Crash}, ErrCrashed}} {
		for i := -1; i < len(kindNames); i++ {
			plan.Call, plan.Kinds = max(0, min(i+1, 1)), Kind(1)<<max(i, 0)
			_, f, file := faultyDisk(t, plan.Plan)
			for kind, err := range everyCall(f, file) {
				struck := plan.Call > 0 && kind == plan.Kinds
				if struck && !errors.Is(err, plan.want) || !struck && err != nil && (plan.Call == 0 || plan.Fault != Crash && !errors.Is(err, syscall.ENOENT)) {
					t.Errorf("%+v: %v returns %v", plan, kind, err)
				}
			}
			if f.Hit() != (plan.Call > 0) || f.Calls() != 1 || plan.Call == 0 && len(f.Trace()) != len(kindNames) {
				t.Errorf("%+v: Hit = %v, %d calls, %v", plan, f.Hit(), f.Calls(), f.Trace())
			}
		}
	}
	for _, plan := range []Plan{{Call: 1, Lasting: true}, {Call: 1, Fault: Crash}} {
		m, f, file := faultyDisk(t, plan)
		before := m.Clone()
		everyCall(f, file)
		if holds(t, m, ".") != holds(t, before, ".") || len(m.Crash(0, 1).Paths()) > 0 {
			t.Errorf("%+v: the disk changed", plan)
		}
		f.Heal()
		if f.Arm(Plan{}); plan.Fault != Crash {
			continue
		}
		for kind, err := range everyCall(f, file) {
			if !errors.Is(err, ErrCrashed) || len(f.Trace())+f.Calls() > 0 {
				t.Errorf("%v after the crash: %v, %v", kind, err, f.Trace())
			}
		}
		must(t, file.Close())
	}
}

// TestAFaultStrikesHalfOfAShortWrite, and what has the name in question: of a rename either of two.
func TestAFaultStrikesHalfOfAShortWrite(t *testing.T) {
	m, _, file := faultyDisk(t, Plan{Call: 1, Fault: Short})
	n, err := file.WriteAt([]byte("abcdefg"), 10)
	if got := contentOf(t, m, "dir/file"); n != 3 || !errors.Is(err, syscall.ENOSPC) || got != "0123456789abc" {
		t.Errorf("short write = %d, %v, and the file holds %q", n, err, got)
	}
	for name, want := range map[string]error{"fil": syscall.EIO, "the-to": syscall.EIO, "none": nil} {
		_, f, _ := faultyDisk(t, Plan{Call: 1, Name: name, Kinds: KindRename})
		if err := f.Rename("dir/file", "the-to"); !errors.Is(err, want) {
			t.Errorf("Rename with a fault for %q: err = %v, want %v", name, err, want)
		}
	}
}

// TestSyncAfterAFailedOneSavesNothing is the trap that Linux sets: after a failed fsync the next
// one succeeds, and what was written before is lost all the same.
func TestSyncAfterAFailedOneSavesNothing(t *testing.T) {
	for lose, want := range map[bool]string{false: "aaaabbbbcccc", true: "aaaa\x00\x00\x00\x00cccc"} {
		m := NewMemory()
		f := NewFaulty(m, Plan{Call: 2, Kinds: KindSync, LoseOnSyncFailure: lose})
		file := written(t, f, "file", "aaaa")
		var errs []error
		for i, text := range []string{"bbbb", "cccc", "d"} {
			errs = append(errs, file.Sync(), f.SyncDir("."))
			_, err := file.WriteAt([]byte(text), int64(4*i+4))
			must(t, err)
		}
		if !errors.Is(errs[2], syscall.EIO) || errors.Join(slices.Delete(errs, 2, 3)...) != nil {
			t.Fatalf("Sync: %v, want the fault in the second", errs)
		}
		left := map[string]string{
			"as it reads": contentOf(t, m, "file"), "Crash(0)": contentOf(t, m.Crash(0, 1), "file"), "Crash(1)": contentOf(t, m.Crash(1, 1), "file"),
		}
		if wants := map[string]string{"as it reads": "aaaabbbbccccd", "Crash(0)": want, "Crash(1)": want + "d"}; !maps.Equal(left, wants) {
			t.Errorf("lose %v: the file holds %q, want %q", lose, left, wants)
		}
	}
}
