package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"ledgerd/snapshot/vfs"
)

// everyCall makes one call of each kind and returns what each returned.
func everyCall(d vfs.FS) map[Kind]error {
	got := map[Kind]error{}
	got[KindMkdirAll] = d.MkdirAll("dir")
	f, err := d.Create("dir/file")
	got[KindCreate] = err
	if err == nil {
		_, got[KindWriteAt] = f.WriteAt([]byte("0123456789"), 0)
		_, got[KindReadAt] = f.ReadAt(make([]byte, 1), 0)
		got[KindTruncate] = f.Truncate(20)
		got[KindPreallocate] = f.Preallocate(30)
		got[KindSync] = f.Sync()
		f.Size()
		f.Close()
	}
	for kind, open := range map[Kind]func(string) (vfs.File, error){KindOpen: d.Open, KindOpenWrite: d.OpenWrite} {
		f, err := open("dir/file")
		if got[kind] = err; err == nil {
			f.Close()
		}
	}
	got[KindRename] = d.Rename("dir/file", "dir/other")
	got[KindRemove] = d.Remove("dir/other")
	_, got[KindList] = d.List("dir")
	got[KindSyncDir] = d.SyncDir("dir")
	lock, err := d.Lock("LOCK")
	if got[KindLock] = err; err == nil {
		lock.Close()
	}
	_, got[KindFreeBytes] = d.FreeBytes("dir")
	return got
}

func TestFaultyCountsEachKindOnce(t *testing.T) {
	f := NewFaulty(NewMemory(), Plan{})
	for kind, err := range everyCall(f) {
		if err != nil {
			t.Errorf("%v: err = %v, want none without a fault", kind, err)
		}
	}
	kinds := Kind(0)
	for _, c := range f.Trace() {
		if kinds&c.Kind != 0 {
			t.Errorf("%v was counted twice", c)
		}
		kinds |= c.Kind
	}
	if want := Kind(1<<len(kindNames) - 1); kinds != want || f.Calls() != len(kindNames) {
		t.Errorf("counted %d calls, of %v, want one each of %v", f.Calls(), kinds, want)
	}
	if f.Hit() {
		t.Error("Hit without a fault")
	}
}

func TestFaultStrikesTheCallOfItsKind(t *testing.T) {
	odd := errors.New("an odd error")
	tests := map[string]struct {
		plan Plan
		want error
	}{
		"EIO":   {Plan{}, syscall.EIO},
		"given": {Plan{Err: odd}, odd},
		"short": {Plan{Fault: Short}, syscall.ENOSPC},
		"crash": {Plan{Fault: Crash}, ErrCrashed},
	}
	for name, tt := range tests {
		for i := range kindNames {
			kind := Kind(1) << i
			tt.plan.Call, tt.plan.Kinds = 1, kind
			f := NewFaulty(NewMemory(), tt.plan)
			if err := everyCall(f)[kind]; !errors.Is(err, tt.want) {
				t.Errorf("%s, %v: err = %v, want %v", name, kind, err, tt.want)
			}
			if !f.Hit() || f.Calls() != 1 {
				t.Errorf("%s, %v: Hit = %v, Calls = %d, want one that was hit", name, kind, f.Hit(), f.Calls())
			}
		}
	}
}

func TestFailedCallsDoNotReachTheDisk(t *testing.T) {
	m := NewMemory()
	f := NewFaulty(m, Plan{})
	file := written(t, f, "file", "before")
	must(t, file.Sync())
	for _, plan := range []Plan{{Call: 1}, {Call: 1, Err: syscall.ENOSPC}, {Call: 1, Lasting: true}, {Call: 1, Fault: Crash}} {
		plan.Kinds = KindChange
		calls := map[string]func() error{
			"write":       func() error { n, err := file.WriteAt([]byte("after!"), 0); return counted(n, err) },
			"truncate":    func() error { return file.Truncate(0) },
			"preallocate": func() error { return file.Preallocate(1 << 20) },
			"remove":      func() error { return f.Remove("file") },
			"rename":      func() error { return f.Rename("file", "other") },
			"mkdir":       func() error { return f.MkdirAll("dir") },
			"create":      func() error { return second(f.Create("new")) },
			"lock":        func() error { _, err := f.Lock("LOCK"); return err },
		}
		for name, call := range calls {
			f.Arm(plan)
			if err := call(); err == nil {
				t.Errorf("%s under %+v: no error", name, plan)
			}
			if got := contentOf(t, m, "file"); got != "before" || len(m.Paths()) != 1 || m.names.isDir("dir") {
				t.Fatalf("%s under %+v: the disk has %q with %q, want nothing changed", name, plan, m.Paths(), got)
			}
		}
	}
}

// counted makes an error of a write that counts bytes though none should be written.
func counted(n int, err error) error {
	if n != 0 {
		return nil
	}
	return err
}

func TestShortWritesWriteHalf(t *testing.T) {
	m := NewMemory()
	f := NewFaulty(m, Plan{Call: 2, Fault: Short, Kinds: KindWriteAt})
	file := written(t, f, "file", "01234")
	n, err := file.WriteAt([]byte("abcdefg"), 5)
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("short write = %d, %v, want 3, %v", n, err, syscall.ENOSPC)
	}
	if got := contentOf(t, m, "file"); got != "01234abc" {
		t.Errorf("after the short write the file holds %q, want %q", got, "01234abc")
	}
	_, err = file.WriteAt([]byte("!"), 8)
	must(t, err)
}

func TestOnlyTheNthMatchingCallFails(t *testing.T) {
	tests := map[string]struct {
		plan Plan
		want string // of six writes, to a, b, a, b, a, b: + or -
	}{
		"none":                    {Plan{Kinds: KindWriteAt}, "++++++"},
		"third":                   {Plan{Call: 3, Kinds: KindWriteAt}, "++-+++"},
		"third and after":         {Plan{Call: 3, Kinds: KindWriteAt, Lasting: true}, "++----"},
		"second of a":             {Plan{Call: 2, Kinds: KindWriteAt, Name: "a"}, "++-+++"},
		"first of b, and after":   {Plan{Call: 1, Kinds: KindWriteAt, Name: "/b", Lasting: true}, "+-+-+-"},
		"fourth of two kinds":     {Plan{Call: 4, Kinds: KindWriteAt | KindCreate}, "+-++++"},
		"sync, of which is none":  {Plan{Call: 1, Kinds: KindSync}, "++++++"},
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
		if want := strings.Contains(tt.want, "-"); d.Hit() != want {
			t.Errorf("%s: Hit = %v, want %v", name, d.Hit(), want)
		}
	}
}

func TestRenamesMatchByEitherName(t *testing.T) {
	for _, name := range []string{"fro", "the-to"} {
		f := NewFaulty(NewMemory(), Plan{Call: 1, Name: name, Kinds: KindRename})
		written(t, f, "from", "")
		if err := f.Rename("from", "the-to"); !errors.Is(err, syscall.EIO) {
			t.Errorf("Rename with a fault for %q: err = %v, want %v", name, err, syscall.EIO)
		}
	}
}

func TestNothingReachesACrashedDisk(t *testing.T) {
	m := NewMemory()
	f := NewFaulty(m, Plan{Call: 4, Fault: Crash})
	file := written(t, f, "file", "text") // Calls 1 and 2.
	lock, err := f.Lock("LOCK")           // Call 3.
	must(t, err)
	before := m.Clone()
	if err := file.Sync(); !errors.Is(err, ErrCrashed) {
		t.Errorf("the call that crashes: err = %v, want %v", err, ErrCrashed)
	}
	f.Heal()
	f.Arm(Plan{})
	for kind, err := range everyCall(f) {
		if !errors.Is(err, ErrCrashed) {
			t.Errorf("%v after the crash: err = %v, want %v", kind, err, ErrCrashed)
		}
	}
	if _, err := file.Size(); !errors.Is(err, ErrCrashed) {
		t.Errorf("Size after the crash: err = %v, want %v", err, ErrCrashed)
	}
	if _, err := file.WriteAt([]byte("late"), 0); !errors.Is(err, ErrCrashed) {
		t.Errorf("WriteAt after the crash: err = %v, want %v", err, ErrCrashed)
	}
	if f.Calls() != 0 || len(f.Trace()) != 0 {
		t.Errorf("calls after the crash are counted: %v", f.Trace())
	}
	if err := m.same(before); err != nil {
		t.Errorf("the disk changed after the crash: %v", err)
	}
	if len(m.Crash(0, 1).Paths()) != 0 {
		t.Error("the sync that crashed made something durable")
	}
	must(t, errors.Join(file.Close(), lock.Close()))
	if _, err := m.Lock("LOCK"); err != nil {
		t.Errorf("the lock of the crashed program is still held: %v", err)
	}
}

// TestSyncAfterAFailedOneSavesNothing is the trap that Linux sets: after a failed fsync the next
// one succeeds, and what was written before is lost all the same.
func TestSyncAfterAFailedOneSavesNothing(t *testing.T) {
	for _, lose := range []bool{false, true} {
		m := NewMemory()
		// Another Faulty in between must not hide the file that can lose.
		f := NewFaulty(NewFaulty(m, Plan{}), Plan{Call: 2, Kinds: KindSync, LoseOnSyncFailure: lose})
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
		for _, share := range shares {
			if got := contentOf(t, m.Crash(share, 1), "file"); got != want {
				t.Errorf("lose %v: after Crash(%v) the file holds %q, want %q", lose, share, got, want)
			}
		}
		_, err = file.WriteAt([]byte("d"), 12)
		must(t, err)
		if got := contentOf(t, m.Crash(1, 1), "file"); got != want+"d" {
			t.Errorf("lose %v: after one more write a crash that keeps all leaves %q, want %q", lose, got, want+"d")
		}
	}
}

// slowSync is a disk whose files wait on the disk, within Sync.
type slowSync struct {
	vfs.FS
	file *slowFile
}

func (d *slowSync) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	d.file.File = f
	return d.file, err
}

type slowFile struct {
	vfs.File
	release chan struct{}
}

func (f *slowFile) Sync() error {
	<-f.release
	return f.File.Sync()
}

// TestCrashWaitsForCallsUnderWay shows that once the crash is seen, a call that was on the disk at
// that time has either returned or fails: nothing is acknowledged after the crash.
func TestCrashWaitsForCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		slow := &slowFile{release: make(chan struct{})}
		f := NewFaulty(&slowSync{m, slow}, Plan{Call: 1, Kinds: KindList, Fault: Crash})
		file := written(t, f, "file", "text")
		must(t, f.SyncDir("."))
		synced, listed := make(chan error, 1), make(chan error, 1)
		go func() { synced <- file.Sync() }()
		synctest.Wait()
		go func() {
			_, err := f.List(".")
			listed <- err
		}()
		synctest.Wait()
		if len(listed) > 0 {
			t.Error("the call that crashes returned while a sync was on the disk")
		}
		close(slow.release)
		if err := <-listed; !errors.Is(err, ErrCrashed) {
			t.Errorf("List = %v, want %v", err, ErrCrashed)
		}
		must(t, <-synced)
		if got := contentOf(t, m.Crash(0, 1), "file"); got != "text" {
			t.Errorf("a sync that was acknowledged left %q durable, want %q", got, "text")
		}
	})
}

func TestDisksAreSafeForConcurrentUse(t *testing.T) {
	m := NewMemory()
	f := NewFaulty(m, Plan{Call: 2000, Fault: Crash})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			name := fmt.Sprintf("file-%d", worker)
			file, err := f.Create(name)
			for i := int64(0); err == nil; i++ {
				if _, err = file.WriteAt(bytes.Repeat([]byte{byte(i)}, 100), 100*i); err == nil {
					_, err = file.ReadAt(make([]byte, 10), 100*i)
				}
				if err == nil {
					err = errors.Join(file.Sync(), f.SyncDir("."))
				}
				if i%100 == 0 {
					m.Crash(0.5, uint64(i)).Overwrite(name, 0, []byte("copy"))
					m.Clone().Overwrite(name, 0, []byte("copy"))
				}
			}
			if !errors.Is(err, ErrCrashed) {
				t.Errorf("worker %d: err = %v, want %v", worker, err, ErrCrashed)
			}
		})
	}
	group.Wait()
	if f.Calls() != 2000 {
		t.Errorf("Calls = %d, want 2000", f.Calls())
	}
	if _, err := m.Open("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the wrapped disk does not work after the crash: %v", err)
	}
}
