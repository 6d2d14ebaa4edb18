package extsort

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// rows makes rows of few keys, so that many are of one, and of keys that begin alike.
func rows(r *rand.Rand, n int) []Row {
	out := make([]Row, n)
	for i := range out {
		k := &out[i].Key
		switch r.IntN(3) {
		case 0:
			k[0] = byte(r.IntN(4))
		case 1:
			k[31] = byte(r.IntN(4)) // alike up to the last byte
		default:
			k[0], k[1], k[20] = 7, byte(r.IntN(3)), byte(r.IntN(50))
		}
		out[i].Slot, out[i].Version = ledger.Slot(r.IntN(5)), uint64(r.IntN(3))
		out[i].Value = fmt.Appendf(nil, "%d/%s", i, strings.Repeat("x", r.IntN(40)))
	}
	return out
}

// naive keeps the newest row of each key in a map.
func naive(all []Row) []Row {
	held := make(map[ledger.Pubkey]Row)
	for _, r := range all {
		was, ok := held[r.Key]
		if !ok || cmp.Or(cmp.Compare(r.Slot, was.Slot), cmp.Compare(r.Version, was.Version)) >= 0 {
			held[r.Key] = r
		}
	}
	var out []Row
	for _, r := range held {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Row) int { return a.Key.Compare(&b.Key) })
	return out
}

func TestNewestOfEachKeyInOrder(t *testing.T) {
	for seed := range uint64(24) {
		r := ledgertest.Seeded(t, seed)
		all := rows(r, 1+r.IntN(1200))
		disk := vfstest.NewMemory()
		s, err := New(disk, "/s", []int64{1, 2000, 80_000, 1 << 20}[r.IntN(4)])
		ledgertest.NoErr(t, err)
		for i := range all {
			ledgertest.NoErr(t, s.Add(&all[i]))
		}
		var got []Row
		cut := r.IntN(Partitions)
		for _, part := range [][2]int{{0, cut}, {cut + 1, Partitions - 1}} {
			if part[0] > part[1] {
				continue
			}
			ledgertest.NoErr(t, s.EachNewest(part[0], part[1], func(r *Row) error {
				own := *r
				own.Value = bytes.Clone(r.Value)
				got = append(got, own)
				return nil
			}))
		}
		same := slices.EqualFunc(got, naive(all), func(a, b Row) bool {
			return a.Key == b.Key && a.Slot == b.Slot && a.Version == b.Version && bytes.Equal(a.Value, b.Value)
		})
		if !same {
			t.Fatalf("seed %d: %d rows of %d keys, want %d", seed, len(all), len(got), len(naive(all)))
		}
		if names, _ := disk.List("/s"); len(names) != 0 {
			t.Fatalf("seed %d: files are left: %v", seed, names)
		}
		ledgertest.NoErr(t, s.Close())
	}
}

func TestMemoryStaysWithinItsBound(t *testing.T) {
	s, err := New(vfs.Disk{}, t.TempDir(), 4<<20)
	ledgertest.NoErr(t, err)
	defer s.Close()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := ledgertest.Seeded(t, 1)
	const n = 150_000 // 35 MB, all with the same first byte: nothing fits at first
	row := Row{Value: make([]byte, 200)}
	for range n {
		for i := 1; i < len(row.Key); i++ {
			row.Key[i] = byte(r.Uint32())
		}
		ledgertest.NoErr(t, s.Add(&row))
	}
	peak, seen := uint64(0), 0
	ledgertest.NoErr(t, s.EachNewest(0, Partitions-1, func(*Row) error {
		if seen++; seen%20_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
		return nil
	}))
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 32<<20 || seen != n {
		t.Errorf("%d rows take %d MiB of heap", seen, grown>>20)
	}
}
