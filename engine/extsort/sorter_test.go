package extsort

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ledgerd/engine/ledger"
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

func newSorter(t *testing.T, disk vfs.FS, dir string, memoryBytes int64) *Sorter {
	t.Helper()
	s, err := New(disk, dir, memoryBytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewestOfEachKeyInOrder(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := rows(r, 1+r.IntN(1200))
		disk := vfstest.NewMemory()
		s := newSorter(t, disk, "/s", []int64{1, 2000, 80_000, 1 << 20}[r.IntN(4)])
		for i := range all {
			if err := s.Add(&all[i]); err != nil {
				t.Fatal(err)
			}
		}
		var got []Row
		cut := r.IntN(Partitions)
		for _, part := range [][2]int{{0, cut}, {cut + 1, Partitions - 1}} {
			if part[0] > part[1] {
				continue
			}
			if err := s.EachNewest(part[0], part[1], func(r *Row) error {
				own := *r
				own.Value = bytes.Clone(r.Value)
				got = append(got, own)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
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
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMemoryStaysWithinItsBound(t *testing.T) {
	s := newSorter(t, vfs.Disk{}, t.TempDir(), 4<<20)
	defer s.Close()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := rand.New(rand.NewPCG(1, 1))
	const n = 150_000 // 35 MB, all with the same first byte: nothing fits at first
	row := Row{Value: make([]byte, 200)}
	for range n {
		for i := 1; i < len(row.Key); i++ {
			row.Key[i] = byte(r.Uint32())
		}
		if err := s.Add(&row); err != nil {
			t.Fatal(err)
		}
	}
	peak, seen := uint64(0), 0
	if err := s.EachNewest(0, Partitions-1, func(*Row) error {
		if seen++; seen%20_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 32<<20 || seen != n {
		t.Errorf("%d rows take %d MiB of heap", seen, grown>>20)
	}
}

func TestFullDiskIsTold(t *testing.T) {
	disk := vfstest.NewMemory()
	disk.SetCapacity(1 << 20)
	s := newSorter(t, disk, "/s", 0)
	row := Row{Value: make([]byte, 1000)}
	var err error
	for range 3000 {
		if err = s.Add(&row); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || !vfs.IsFull(err) {
		t.Errorf("err = %v, want a full disk", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if used := disk.UsedBytes(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}

func TestVisitEndsTheWalk(t *testing.T) {
	s := newSorter(t, vfstest.NewMemory(), "/s", 0)
	for i := range byte(5) {
		s.Add(&Row{Key: ledger.Pubkey{i}})
	}
	enough := errors.New("enough")
	seen := 0
	if err := s.EachNewest(0, Partitions-1, func(*Row) error { seen++; return enough }); err != enough || seen != 1 {
		t.Errorf("err = %v after %d rows", err, seen)
	}
}
