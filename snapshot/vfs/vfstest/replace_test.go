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

// replaceTwice gives data/a an old content and then a new one, and returns how many of the two it has for good.
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

// held returns which of the contents data/a has: 0 for none, that is no file, and -1 for anything else.
func held(t *testing.T, m *Memory, contents [][]byte) int {
	t.Helper()
	got, err := m.ReadFile("data/a")
	if errors.Is(err, syscall.ENOENT) {
		return 0
	}
	for i, content := range contents {
		if err == nil && bytes.Equal(got, content) {
			return i + 1
		}
	}
	return -1
}

func TestReplaceLeavesTheOldOrTheNewAfterACrashAtEveryCall(t *testing.T) {
	contents := [][]byte{bytes.Repeat([]byte("old"), 3000), bytes.Repeat([]byte("newer"), 1000)}
	for n := 1; ; n++ {
		m := NewMemory()
		must(t, m.MkdirAll("data"))
		disk := NewFaulty(m, Plan{Call: n, Fault: Crash})
		done, err := replaceTwice(disk, contents)
		for seed := range uint64(20) {
			for _, share := range []float64{0, 0.5, 1} {
				left := m.Crash(share, seed)
				if got := held(t, left, contents); got < done || got > done+1 {
					t.Fatalf("crash at call %d, share %v, seed %d: content %d of %d", n, share, seed, got, done)
				}
				if again, err := replaceTwice(left, contents); err != nil || again != 2 || held(t, left, contents) != 2 {
					t.Fatalf("crash at call %d: the next attempt: %v", n, err)
				}
			}
		}
		if !disk.Hit() {
			if err != nil || done != 2 {
				t.Fatalf("%d, %v", done, err)
			}
			return
		}
	}
}

func TestReplaceThatFailsTellsWhatPasses(t *testing.T) {
	contents := [][]byte{[]byte("old"), []byte("new")}
	for _, errno := range []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE, io.ErrShortWrite} {
		for n := 1; ; n++ {
			m := NewMemory()
			must(t, m.MkdirAll("data"))
			disk := NewFaulty(m, Plan{Call: n, Err: errno})
			done, err := replaceTwice(disk, contents)
			if !disk.Hit() {
				break
			}
			trace := disk.Trace()
			failed := trace[0]
			for _, c := range trace {
				if c.Err != nil && errors.Is(c.Err, errno) {
					failed = c
				}
			}
			syncing := failed.Kind == KindSync || failed.Kind == KindSyncDir && errno != syscall.EMFILE
			if want := errno != syscall.EIO && !syncing; errno != syscall.EMFILE && vfs.IsFull(err) != want {
				t.Errorf("%v: IsFull(%v) is not %v", failed, err, want)
			}
			if got := held(t, m, contents); !errors.Is(err, errno) || got < done || got > done+1 {
				t.Errorf("%v: %v, content %d of %d", failed, err, got, done)
			}
			if vfs.IsFull(err) && strings.Contains(strings.Join(m.Paths(), " "), vfs.TemporarySuffix) {
				t.Errorf("%v: %v is left, and takes space", failed, m.Paths())
			}
			if _, err := replaceTwice(m, contents); err != nil {
				t.Errorf("%v: the next attempt: %v", failed, err)
			}
		}
	}
}
