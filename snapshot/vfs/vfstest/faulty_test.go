package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
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

// faultyDisk returns a disk with a file of ten bytes, which is open.
func faultyDisk(t *testing.T) (*Memory, *Faulty, vfs.File) {
	t.Helper()
	m := NewMemory()
	must(t, m.MkdirAll("dir"))
	f := NewFaulty(m, Plan{})
	return m, f, written(t, f, "dir/file", "0123456789")
}

// TestAFaultStrikesTheCallOfItsKind and no other, and nothing of that call reaches the disk.
func TestAFaultStrikesTheCallOfItsKind(t *testing.T) {
	_, f, file := faultyDisk(t)
	f.Arm(Plan{})
	for kind, err := range everyCall(f, file) {
		if err != nil {
			t.Errorf("%v without a fault: %v", kind, err)
		}
	}
	if f.Hit() || f.Calls() != len(kindNames) || len(f.Trace()) != len(kindNames) {
		t.Errorf("Hit = %v, %d calls, %v; want each of %v once", f.Hit(), f.Calls(), f.Trace(), kindNames)
	}
	odd := errors.New("an odd error")
	for _, plan := range []Plan{{Err: syscall.EIO}, {Err: odd}, {Fault: Short, Err: syscall.ENOSPC}, {Fault: Crash, Err: ErrCrashed}} {
		want := plan.Err
		for i := range kindNames {
			plan.Call, plan.Kinds = 1, Kind(1)<<i
			if plan.Fault != Fail || want == syscall.EIO {
				plan.Err = nil
			}
			_, f, file := faultyDisk(t)
			f.Arm(plan)
			for kind, err := range everyCall(f, file) {
				if struck := kind == plan.Kinds; struck != errors.Is(err, want) && (struck || plan.Fault != Crash) {
					t.Errorf("%+v: %v returns %v", plan, kind, err)
				}
			}
			if !f.Hit() || f.Calls() != 1 {
				t.Errorf("%+v: Hit = %v, Calls = %d, want one that was hit", plan, f.Hit(), f.Calls())
			}
		}
	}
	for _, plan := range []Plan{{Call: 1, Lasting: true}, {Call: 1, Fault: Crash}} {
		m, f, file := faultyDisk(t)
		before := m.Clone()
		f.Arm(plan)
		everyCall(f, file)
		if holds(t, m, ".") != holds(t, before, ".") || len(m.Crash(0, 1).Paths()) > 0 {
			t.Errorf("%+v: the disk changed", plan)
		}
		if plan.Fault != Crash {
			continue
		}
		f.Heal()
		f.Arm(Plan{})
		for kind, err := range everyCall(f, file) {
			if !errors.Is(err, ErrCrashed) || len(f.Trace())+f.Calls() > 0 {
				t.Errorf("%v after the crash: %v, %v", kind, err, f.Trace())
			}
		}
		must(t, file.Close())
	}
}

func TestOnlyTheNthMatchingCallFails(t *testing.T) {
	tests := map[string]struct {
		plan Plan
		want string // of six writes, to a, b, a, b, a, b: + or -
	}{
		"third":                   {Plan{Call: 3, Kinds: KindWriteAt}, "++-+++"},
		"third and after":         {Plan{Call: 3, Kinds: KindWriteAt, Lasting: true}, "++----"},
		"second of a":             {Plan{Call: 2, Kinds: KindWriteAt, Name: "a"}, "++-+++"},
		"first of b, and after":   {Plan{Call: 1, Kinds: KindWriteAt, Name: "/b", Lasting: true}, "+-+-+-"},
		"fourth of two kinds":     {Plan{Call: 4, Kinds: KindWriteAt | KindCreate}, "+-++++"},
		"third, with a crash":     {Plan{Call: 3, Kinds: KindWriteAt, Fault: Crash}, "++----"},
		"seventh, which is none":  {Plan{Call: 7, Kinds: KindWriteAt}, "++++++"},
		"a name that no file has": {Plan{Call: 1, Name: "none", Lasting: true}, "++++++"},
	}
	for name, tt := range tests {
		m := NewMemory()
		must(t, m.MkdirAll("dir"))
		d := NewFaulty(m, tt.plan)
		var files [2]vfs.File
		for i, name := range []string{"dir/a", "dir/b"} {
			f, err := d.Create(name)
			must(t, err)
			files[i] = f
		}
		got := ""
		for i := range 6 {
			if _, err := files[i%2].WriteAt([]byte("x"), int64(i)); err != nil {
				got += "-"
			} else {
				got += "+"
			}
		}
		if got != tt.want {
			t.Errorf("%s: writes went %s, want %s", name, got, tt.want)
		}
	}
	m, f, file := faultyDisk(t)
	f.Arm(Plan{Call: 1, Fault: Short})
	n, err := file.WriteAt([]byte("abcdefg"), 10)
	if got := contentOf(t, m, "dir/file"); n != 3 || !errors.Is(err, syscall.ENOSPC) || got != "0123456789abc" {
		t.Errorf("short write = %d, %v, and the file holds %q", n, err, got)
	}
	for _, name := range []string{"fil", "the-to"} {
		_, f, _ := faultyDisk(t)
		f.Arm(Plan{Call: 1, Name: name, Kinds: KindRename})
		if err := f.Rename("dir/file", "the-to"); !errors.Is(err, syscall.EIO) {
			t.Errorf("Rename with a fault for %q: err = %v, want %v", name, err, syscall.EIO)
		}
	}
}

// TestSyncAfterAFailedOneSavesNothing is the trap that Linux sets: after a failed fsync the next
// one succeeds, and what was written before is lost all the same.
func TestSyncAfterAFailedOneSavesNothing(t *testing.T) {
	for _, lose := range []bool{false, true} {
		m := NewMemory()
		f := NewFaulty(m, Plan{Call: 2, Kinds: KindSync, LoseOnSyncFailure: lose})
		file := written(t, f, "file", "aaaa")
		must(t, file.Sync())
		must(t, f.SyncDir("."))
		_, err := file.WriteAt([]byte("bbbb"), 4)
		must(t, err)
		if err := file.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("Sync = %v, want the fault", err)
		}
		_, err = file.WriteAt([]byte("cccc"), 8)
		must(t, err)
		must(t, file.Sync())
		if got := contentOf(t, m, "file"); got != "aaaabbbbcccc" {
			t.Errorf("lose %v: after the failed sync the file reads %q, want all of it", lose, got)
		}
		want := "aaaabbbbcccc"
		if lose {
			want = "aaaa\x00\x00\x00\x00cccc"
		}
		_, err = file.WriteAt([]byte("d"), 12)
		must(t, err)
		for share, want := range map[float64]string{0: want, 1: want + "d"} {
			if got := contentOf(t, m.Crash(share, 1), "file"); got != want {
				t.Errorf("lose %v: after Crash(%v) the file holds %q, want %q", lose, share, got, want)
			}
		}
	}
}

func TestDisksAreSafeForConcurrentUse(t *testing.T) {
	m := NewMemory()
	f := NewFaulty(m, Plan{Call: 1000, Fault: Crash})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			name := fmt.Sprintf("file-%d", worker)
			file, err := f.Create(name)
			for i := int64(0); err == nil; i++ {
				_, err = file.WriteAt(bytes.Repeat([]byte{byte(i)}, 100), 100*i)
				err = errors.Join(err, file.Sync(), f.SyncDir("."), m.Crash(0.5, uint64(i)).WriteFile(name, nil), m.Clone().WriteFile(name, nil))
			}
			if !errors.Is(err, ErrCrashed) {
				t.Errorf("worker %d: err = %v, want %v", worker, err, ErrCrashed)
			}
		})
	}
	group.Wait()
	if f.Calls() != 1000 {
		t.Errorf("Calls = %d, want 1000", f.Calls())
	}
}
