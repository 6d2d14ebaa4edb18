package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

var must = ledgertest.Must

// written makes a file of these bytes and leaves it open.
func written(t *testing.T, d vfs.FS, name, text string) vfs.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	if text != "" {
		_, err = f.WriteAt([]byte(text), 0)
		must(t, err)
	}
	return f
}

// contentOf returns the bytes of a file.
func contentOf(t *testing.T, d vfs.FS, name string) string {
	t.Helper()
	f, err := d.Open(name)
	must(t, err)
	defer f.Close()
	p, err := io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
	must(t, err)
	return string(p)
}

// holds returns all that a directory holds.
func holds(t *testing.T, d vfs.FS, name string) (text string) {
	t.Helper()
	names, err := d.List(name)
	if errors.Is(err, syscall.ENOTDIR) {
		return contentOf(t, d, name)
	}
	must(t, err)
	for _, base := range names {
		text += fmt.Sprintf("%s{%s}", base, holds(t, d, filepath.Join(name, base)))
	}
	return text
}

// actions are what a driver does, some more often than others.
var actions = []string{"create", "create", "open", "open to write", "open to write", "remove", "rename", "mkdir", "list", "sync dir", "free", "lock", "unlock",
	"read", "read", "read", "write", "write", "write", "write", "truncate", "preallocate", "size", "sync", "close"}

// names are those of the files and directories of a driver.
var names = []string{"a", "b", "d", "d/a", "d/d", "d/d/a", "d/d/e", "e", "e/a", "none/a", "a/a"}

// driver does random things on a disk.
type driver struct {
	r      *rand.Rand
	disk   vfs.FS
	dir    string
	files  [3]vfs.File
	closed [3]bool
	lock   io.Closer
}

// newDriver returns a driver that does the same as others of the seed.
func newDriver(disk vfs.FS, dir string, seed uint64) *driver {
	return &driver{r: rand.New(rand.NewPCG(seed, 0)), disk: disk, dir: dir, lock: io.NopCloser(nil)}
}

func (d *driver) name() string { return filepath.Join(d.dir, names[d.r.IntN(len(names))]) }

// do does something and returns what it was and what came of it: what callers may rely on.
func (d *driver) do() (what, outcome string) {
	action, at, to, file := actions[d.r.IntN(len(actions))], d.name(), d.name(), d.r.IntN(3)
	var err error
	var answer any
	switch _, notDir := d.disk.List(at); action {
	case "create":
		err = d.open(file, at, d.disk.Create)
	case "open":
		if notDir != nil { // else the real disk opens it
			err = d.open(file, at, d.disk.Open)
		}
	case "open to write":
		err = d.open(file, at, d.disk.OpenWrite)
	case "remove":
		err = d.disk.Remove(at)
	case "rename":
		err = d.disk.Rename(at, to)
	case "mkdir":
		err = d.disk.MkdirAll(at)
	case "list":
		answer, err = d.disk.List(at)
	case "sync dir":
		err = d.disk.SyncDir(at)
	case "free":
		if !errors.Is(notDir, syscall.ENOTDIR) { // else the real disk answers
			_, err = d.disk.FreeBytes(at)
			answer, err = errors.Is(err, fs.ErrNotExist), nil
		}
	case "lock":
		var lock io.Closer
		if lock, err = d.disk.Lock(at); err == nil {
			d.lock.Close()
			d.lock = lock
		}
	case "unlock":
		err = d.lock.Close()
	default:
		answer, err = d.doFile(action, file)
	}
	known := []error{nil, io.EOF, fs.ErrClosed, vfs.ErrLocked, syscall.ENOTEMPTY, fs.ErrExist, fs.ErrNotExist,
		syscall.ENOTDIR, syscall.EISDIR}
	kind := slices.IndexFunc(known, func(kind error) bool { return errors.Is(err, kind) })
	return fmt.Sprintf("%s %s to %s, file %d", action, at, to, file), fmt.Sprintf("%v, %T of kind %d", answer, err, kind)
}

func (d *driver) open(i int, name string, open func(string) (vfs.File, error)) error {
	f, err := open(name)
	if err == nil {
		if d.files[i] != nil {
			d.files[i].Close()
		}
		d.files[i], d.closed[i] = f, false
	}
	return err
}

// doFile does what the real disk, too, refuses if the file is closed.
func (d *driver) doFile(action string, file int) (answer any, err error) {
	off, size, fill := d.r.Int64N(5000), 1+d.r.Int64N(1500), byte(1+d.r.IntN(255))
	f, closed := d.files[file], d.closed[file]
	switch odd := d.r.IntN(20); {
	case f == nil:
		return nil, nil
	case odd == 0:
		size = 3 * pageBytes
	case odd == 1 && !closed:
		off = -1
	}
	switch action {
	case "read":
		p := make([]byte, size)
		n, err := f.ReadAt(p, off)
		return string(p[:n]), err
	case "write":
		return f.WriteAt(bytes.Repeat([]byte{fill}, int(size)), off)
	case "truncate":
		return nil, f.Truncate(off)
	case "preallocate":
		if off < 0 {
			size = -1
		}
		return nil, f.Preallocate(size)
	case "size":
		if !closed {
			return f.Size()
		}
	case "sync":
		return nil, f.Sync()
	case "close":
		d.closed[file] = true
		return nil, f.Close()
	}
	return nil, nil
}

// TestMemoryIsLikeTheRealDisk does the same random things on both.
func TestMemoryIsLikeTheRealDisk(t *testing.T) {
	for seed := range uint64(5) {
		disk, memory := newDriver(vfs.Disk{}, t.TempDir(), seed), newDriver(NewFaulty(NewMemory(), Plan{}), "/data", seed)
		must(t, memory.disk.MkdirAll("data"))
		for i := range 500 {
			_, want := disk.do()
			what, got := memory.do()
			if i%10 == 0 {
				want, got = want+holds(t, disk.disk, disk.dir), got+holds(t, memory.disk, memory.dir)
			}
			ledgertest.MustHold(t, got == want, "seed %d, step %d, %s:\n got %.300q\nwant %.300q", seed, i, what, got, want)
		}
		for i, f := range disk.files {
			if f != nil && !disk.closed[i] {
				f.Close()
			}
		}
		disk.lock.Close()
	}
}

// A file system that cannot take space in advance, as that of /proc, is written to without.
func TestSpaceIsTakenInAdvanceWhereThatIsPossible(t *testing.T) {
	f, err := vfs.Disk{}.OpenWrite("/proc/self/comm")
	must(t, err)
	defer f.Close()
	must(t, f.Preallocate(1))
}

func TestOnlyFilesAreOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{pipe, "/dev/zero"} {
		for _, open := range []func(string) (vfs.File, error){vfs.Disk{}.Open, vfs.Disk{}.OpenWrite} {
			if _, err := open(name); err == nil {
				t.Errorf("%s was opened", name)
			}
		}
	}
}
