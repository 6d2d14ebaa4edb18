package vfstest

import "ledgerd/snapshot/vfs"

// faultyFile is an open file of a Faulty.
type faultyFile struct {
	disk  *Faulty
	inner vfs.File
	name  string
}

// loser is a file that can lose what was not synced, as Linux does when it cannot write it.
type loser interface{ loseUnsynced() }

func (f *faultyFile) do(kind Kind, disk func() error, instead func(Plan)) error {
	return f.disk.do(Call{Kind: kind, Name: f.name}, disk, instead)
}

// ReadAt implements vfs.File.
func (f *faultyFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do(KindReadAt, func() (err error) {
		n, err = f.inner.ReadAt(p, off)
		return err
	}, nil)
	return n, err
}

// WriteAt implements vfs.File.
func (f *faultyFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.do(KindWriteAt, func() (err error) {
		n, err = f.inner.WriteAt(p, off)
		return err
	}, func(plan Plan) {
		if plan.Fault == Short {
			n, _ = f.inner.WriteAt(p[:len(p)/2], off) // The call fails with ENOSPC in any case.
		}
	})
	return n, err
}

// Size implements vfs.File. It is not counted, but after a crash it fails too.
func (f *faultyFile) Size() (int64, error) {
	f.disk.mu.Lock()
	crashed := f.disk.crashed
	f.disk.mu.Unlock()
	if crashed {
		return 0, pathError("size", f.name, ErrCrashed)
	}
	return f.inner.Size()
}

// Truncate implements vfs.File.
func (f *faultyFile) Truncate(size int64) error {
	return f.do(KindTruncate, func() error { return f.inner.Truncate(size) }, nil)
}

// Preallocate implements vfs.File.
func (f *faultyFile) Preallocate(size int64) error {
	return f.do(KindPreallocate, func() error { return f.inner.Preallocate(size) }, nil)
}

// Sync implements vfs.File.
func (f *faultyFile) Sync() error {
	return f.do(KindSync, f.inner.Sync, func(plan Plan) {
		if plan.LoseOnSyncFailure {
			f.loseUnsynced()
		}
	})
}

// loseUnsynced implements loser for the wrapped disk.
func (f *faultyFile) loseUnsynced() {
	if l, ok := f.inner.(loser); ok {
		l.loseUnsynced()
	}
}

// Close implements vfs.File. It works even after a crash.
func (f *faultyFile) Close() error { return f.inner.Close() }
