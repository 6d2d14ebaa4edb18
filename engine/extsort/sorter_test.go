package extsort

import (
	"os"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

func TestMemoryStaysWithinItsBound(t *testing.T) {
	dir := t.TempDir()
	s, err := New(vfs.Disk{}, dir, 4<<20)
	ledgertest.Must(t, err)
	defer s.Close()
	before := ledgertest.HeapBytes()
	r := ledgertest.Seeded(t, 1)
	const n = 150_000 // 35 MB, all with the same first byte: nothing fits at first
	row := Row{Value: make([]byte, 200)}
	for range n {
		for i := 1; i < len(row.Key); i++ {
			row.Key[i] = byte(r.Uint32())
		}
		ledgertest.Must(t, s.Add(&row))
	}
	peak, seen := uint64(0), 0
	ledgertest.Must(t, s.EachNewest(0, Partitions-1, func(*Row) error {
		if seen++; seen%20_000 == 0 {
			peak = max(peak, ledgertest.HeapBytes())
		}
		return nil
	}))
	if grown := int64(peak) - int64(before); grown > 32<<20 || seen != n {
		t.Errorf("%d rows take %d MiB of heap", seen, grown>>20)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("behind the last row %d files are left, %v", len(left), err)
	}
}
