package vfstest

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"ledgerd/snapshot/vfs"
)

// TestWantOfSpaceIsTold from other failures. A sync that fails is none, whatever its reason. That Replace leaves the old or the new content
// the tests of the log show.
func TestWantOfSpaceIsTold(t *testing.T) {
	for fault, space := range map[error]bool{
		syscall.EIO: false, syscall.EROFS: false, syscall.EFBIG: false, syscall.EMFILE: false, syscall.ENFILE: false,
		syscall.ENOSPC: true, syscall.EDQUOT: true, io.ErrShortWrite: true, errors.Join(syscall.EIO, syscall.ENOSPC): true,
	} {
		for _, kind := range []Kind{KindCreate, KindWriteAt, KindSync, KindRename, KindSyncDir} {
			disk := NewFaulty(NewMemory(), Plan{Call: 1, Err: fault, Kinds: kind})
			_, err := vfs.Replace(disk, "a", func(f vfs.File) error { _, err := f.WriteAt([]byte("new"), 0); return err })
			full, files := space && kind&(KindSync|KindSyncDir) == 0, fault == syscall.EMFILE || fault == syscall.ENFILE
			if !errors.Is(err, fault) || vfs.IsFull(err) != full || vfs.IsOutOfFiles(err) != files {
				t.Errorf("%v of a %v: %v, IsFull %v, IsOutOfFiles %v", fault, kind, err, vfs.IsFull(err), vfs.IsOutOfFiles(err))
			}
		}
	}
}
