package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
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
	size, err := f.Size()
	must(t, err)
	p := make([]byte, size)
	if n, err := f.ReadAt(p, 0); n != len(p) || err != nil && err != io.EOF {
		t.Fatalf("ReadAt of all %d bytes of %s = %d, %v", size, name, n, err)
	}
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

// step is something that a driver does.
type step struct {
	action   string
	name, to string
	file     int // of those that are open
	fill     byte
	off      int64
	size     int64
}

// randomStep returns a step with these names.
func randomStep(r *rand.Rand, names []string) step {
	name := func() string { return names[r.IntN(len(names))] }
	s := step{action: actions[r.IntN(len(actions))], name: name(), to: name(), file: r.IntN(3), fill: byte(1 + r.IntN(255)),
		off: r.Int64N(5000), size: 1 + r.Int64N(1500)}
	switch r.IntN(20) {
	case 0:
		s.size = 3 * pageBytes
	case 1:
		s.off = -1
	}
	return s
}

// driver does steps on a disk.
type driver struct {
	disk   vfs.FS
	dir    string
	files  [3]vfs.File
	closed [3]bool
	lock   io.Closer
}

// do does a step and returns what came of it: what callers may rely on.
func (d *driver) do(s step) string {
	at, f := filepath.Join(d.dir, s.name), d.files[s.file]
	var err error
	var answer any
	switch _, notDir := d.disk.List(at); s.action {
	case "create":
		err = d.open(s.file, at, d.disk.Create)
	case "open":
		if notDir != nil { // else the real disk opens it
			err = d.open(s.file, at, d.disk.Open)
		}
	case "open to write":
		err = d.open(s.file, at, d.disk.OpenWrite)
	case "remove":
		err = d.disk.Remove(at)
	case "rename":
		err = d.disk.Rename(at, filepath.Join(d.dir, s.to))
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
			d.unlock()
			d.lock = lock
		}
	case "unlock":
		err = d.unlock()
	default:
		if f != nil {
			answer, err = d.doFile(f, s)
		}
	}
	known := []error{nil, io.EOF, fs.ErrClosed, vfs.ErrLocked, syscall.ENOTEMPTY, fs.ErrExist, fs.ErrNotExist, syscall.ENOTDIR, syscall.EISDIR, err}
	for i, kind := range known {
		if errors.Is(err, kind) {
			return fmt.Sprintf("%v, %T like %v", answer, err, known[i%(len(known)-1)])
		}
	}
	return ""
}

func (d *driver) unlock() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
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
func (d *driver) doFile(f vfs.File, s step) (answer any, err error) {
	if d.closed[s.file] {
		s.off = max(s.off, 0)
	}
	switch s.action {
	case "read":
		p := make([]byte, s.size)
		n, err := f.ReadAt(p, s.off)
		return string(p[:n]), err
	case "write":
		return f.WriteAt(bytes.Repeat([]byte{s.fill}, int(s.size)), s.off)
	case "truncate":
		return nil, f.Truncate(s.off)
	case "preallocate":
		if s.off < 0 {
			s.size = -1
		}
		return nil, f.Preallocate(s.size)
	case "size":
		if !d.closed[s.file] {
			return f.Size()
		}
	case "sync":
		return nil, f.Sync()
	case "close":
		d.closed[s.file] = true
		return nil, f.Close()
	}
	return nil, nil
}

// TestMemoryIsLikeTheRealDisk does the same random things on both.
func TestMemoryIsLikeTheRealDisk(t *testing.T) {
	names := []string{"a", "b", "d", "d/a", "d/d", "d/d/a", "d/d/e", "e", "e/a", "none/a", "a/a"}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 0))
		disk := &driver{disk: vfs.Disk{}, dir: t.TempDir()}
		memory := &driver{disk: NewFaulty(NewMemory(), Plan{}), dir: "/data"}
		must(t, memory.disk.MkdirAll("data"))
		for i := range 500 {
			s := randomStep(r, names)
			want, got := disk.do(s), memory.do(s)
			if i%10 == 0 {
				want, got = want+holds(t, disk.disk, disk.dir), got+holds(t, memory.disk, memory.dir)
			}
			if got != want {
				t.Fatalf("seed %d, step %d, %+v:\n got %.300q\nwant %.300q", seed, i, s, got, want)
			}
		}
		for i, f := range disk.files {
			if f != nil && !disk.closed[i] {
				f.Close()
			}
		}
		_ = disk.unlock()
	}
}
