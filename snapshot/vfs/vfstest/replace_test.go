package vfstest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"ledgerd/snapshot/vfs"
)

// replaceTwice gives data/a the first and then the second of the contents, and returns how many of the two it has for good.
func replaceTwice(disk vfs.FS, contents [][]byte) (done int, err error) {
	for _, content := range contents {
		f, err := vfs.Replace(disk, "data/a", func(f vfs.File) error { _, err := f.WriteAt(content, 0); return err })
		if err != nil {
			return done, err
		}
		done++
		if err := f.Close(); err != nil {
			return done, err
		}
	}
	return done, nil
}

// F9, F10: TestReplaceLeavesTheOldOrTheNew fails each call in turn, in every way, and looks at what is left then and after a power cut.
func TestReplaceLeavesTheOldOrTheNew(t *testing.T) {
	contents := [][]byte{bytes.Repeat([]byte("old"), 3000), bytes.Repeat([]byte("newer"), 1000)}
	for fault, space := range map[error]bool{ // whether IsFull passes it
		ErrCrashed: false, syscall.EIO: false, syscall.EROFS: false, syscall.EFBIG: false, syscall.EMFILE: false, syscall.ENFILE: false,
		syscall.ENOSPC: true, syscall.EDQUOT: true, io.ErrShortWrite: true, errors.Join(syscall.EIO, syscall.ENOSPC): true,
	} {
		plan := Plan{Call: 1, Err: fault}
		if fault == ErrCrashed {
			plan.Fault = Crash
		}
		for ; ; plan.Call++ {
			m := NewMemory()
			must(t, m.MkdirAll("data"))
			disk := NewFaulty(m, plan)
			done, err := replaceTwice(disk, contents)
			if !disk.Hit() {
				if err != nil || done != 2 {
					t.Fatalf("without a fault: %d, %v", done, err)
				}
				break
			}
			var failed Call
			for _, c := range disk.Trace() {
				if errors.Is(c.Err, fault) {
					failed = c
				}
			}
			noFiles := fault == syscall.EMFILE || fault == syscall.ENFILE
			syncing := failed.Kind == KindSync || failed.Kind == KindSyncDir && !noFiles
			if !errors.Is(err, fault) || vfs.IsFull(err) != (space && !syncing) || vfs.IsOutOfFiles(err) != noFiles {
				t.Errorf("%v: %v, IsFull %v, IsOutOfFiles %v", failed, err, vfs.IsFull(err), vfs.IsOutOfFiles(err))
			}
			if vfs.IsFull(err) && strings.Contains(strings.Join(m.Paths(), " "), vfs.TemporarySuffix) {
				t.Errorf("%v: %v is left, and takes space", failed, m.Paths())
			}
			left := []*Memory{m, m.Crash(0, 0), m.Crash(1, 0)}
			for seed := range uint64(20) {
				left = append(left, m.Crash(0.5, seed))
			}
			for i, left := range left {
				got, err := left.ReadFile("data/a")
				none := done == 0 && errors.Is(err, syscall.ENOENT)
				if !none && !bytes.Equal(got, contents[max(done, 1)-1]) && !bytes.Equal(got, contents[min(done, 1)]) {
					t.Fatalf("%v, disk %d left of it: %d bytes, %v after %d", failed, i, len(got), err, done)
				}
				_, err = replaceTwice(left, contents)
				if got, _ := left.ReadFile("data/a"); err != nil || !bytes.Equal(got, contents[1]) {
					t.Fatalf("%v, disk %d left of it: the next attempt: %v", failed, i, err)
				}
			}
		}
	}
}
