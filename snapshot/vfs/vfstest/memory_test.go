package vfstest

import (
	"errors"
	"syscall"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

func TestAFullDiskTakesWhatFits(t *testing.T) {
	m := NewMemory()
	f, other := written(t, m, "file", "x"), written(t, m, "other", "")
	write := func(f vfs.File, length int, off int64, fit int) {
		t.Helper()
		n, err := f.WriteAt(make([]byte, length), off)
		if full := errors.Is(err, syscall.ENOSPC); n != fit || full != (fit < length) || !full && err != nil {
			t.Errorf("WriteAt(%d bytes, %d) = %d, %v, want %d", length, off, n, err, fit)
		}
	}
	m.SetCapacity(3*pageBytes + 100)
	write(f, 4*pageBytes, 10, 3*pageBytes-10)
	size, _ := f.Size()
	ledgertest.Equal(t, size, 3*pageBytes, "the size after the short write")
	write(other, 1, 0, 0)
	write(f, 4, 100, 4) // what is there
	must(t, f.Truncate(1<<30))
	m.SetCapacity(5 * pageBytes)
	write(other, 1, 0, 1)
	if err := f.Preallocate(5 * pageBytes); !errors.Is(err, syscall.ENOSPC) || m.UsedBytes() != 4*pageBytes {
		t.Errorf("Preallocate of more than there is: %v, and %d bytes are used", err, m.UsedBytes())
	}
	must(t, f.Preallocate(4*pageBytes))
	write(f, 4*pageBytes, 0, 4*pageBytes)
}
