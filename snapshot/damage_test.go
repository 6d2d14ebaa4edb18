package snapshot

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// F7, F8, G24: a snapshot that was cut or changed is refused when it is loaded, and found by Verify and Prune.
func TestEveryHarmIsRefused(t *testing.T) {
	disk, _, w := smallSnapshot(t)
	must(t, serves(disk, w.Info))
	for _, name := range []string{w.Name, w.Meta.History[0].Name} {
		whole := content(t, disk, name)
		refused := func(what string, b []byte) *vfstest.Memory {
			t.Helper()
			hurt := replaced(t, disk, name, b)
			var place *DamagedError
			if err := serves(hurt, w.Info); !errors.Is(err, ErrDamaged) || !errors.As(err, &place) || place.File != name {
				t.Fatalf("%s %s: err = %v, want damage of that file", name, what, err)
			}
			return hurt
		}
		refused("and a byte more", slices.Concat(whole, []byte{0}))
		refused("and a footer more", slices.Concat(whole, whole[len(whole)-footerBytes:]))
		refused("twice", slices.Concat(whole, whole))
		refused("all zeros", make([]byte, len(whole)))
		for i := range whole { // 0 bytes and every frame boundary included
			refused(fmt.Sprintf("cut to %d bytes", i), whole[:i])
			if i%vfstest.Stride(2) > 0 {
				continue
			}
			for _, mask := range []byte{0x80, 0xff, 1} {
				damaged := slices.Clone(whole)
				damaged[i] ^= mask
				what := fmt.Sprintf("with byte %d of %d flipped by %#x", i, len(whole), mask)
				hurt := refused(what, damaged)
				if mask > 1 {
					continue
				}
				s := openTestStore(t, hurt)
				if oldest, err := s.Prune(t.Context(), 1, Pace{}); err != nil || oldest != nil {
					t.Fatalf("%s: Prune = %v, %v, want none that counts", what, oldest, err)
				}
				snap, err := s.Open(w.Info)
				if err == nil {
					err = snap.Verify(t.Context(), Pace{})
				}
				ledgertest.ErrorIs(t, err, ErrDamaged, "%s: Verify", what)
			}
		}
	}
}

// F51: a snapshot is not served with a file of another, nor one of a newer program.
func TestFilesOfOthersAreRefused(t *testing.T) {
	disk := vfstest.NewMemory()
	s := openTestStore(t, disk)
	first := write(t, s, testState(20, 14, 7, 3))
	second := write(t, s, testState(30, 14, 9, 2))
	a, b := second.Meta.History[0].Name, second.Meta.History[1].Name
	swap := func(x, y string) *vfstest.Memory {
		return replaced(t, replaced(t, disk, x, content(t, disk, y)), y, content(t, disk, x))
	}
	without := func(name string) *vfstest.Memory {
		disk := disk.Clone()
		must(t, disk.Remove(path.Join(testDir, name)))
		return disk
	}
	newer := func(name string) *vfstest.Memory { // of format version 7
		b := content(t, disk, name)
		b[8] = 7
		copy(b, resealHeader(b[:headerBytes]))
		return replaced(t, disk, name, b)
	}
	for name, tt := range map[string]struct {
		disk    *vfstest.Memory
		damaged bool
		says    string
	}{
		"snapshots swapped":            {swap(first.Name, second.Name), true, "another's name"},
		"history files swapped":        {swap(a, b), true, "another file"},
		"history file missing":         {without(a), true, "is missing"},
		"snapshot missing":             {without(second.Name), false, "no such file"},
		"history in a snapshot's name": {replaced(t, disk, second.Name, content(t, disk, a)), true, "the header says"},
		"snapshot in a history's name": {replaced(t, disk, a, content(t, disk, first.Name)), true, "the header says"},
		"newer snapshot":               {newer(second.Name), false, second.Name + " has format version 7, this program reads up to 4"},
		"newer history file":           {newer(a), false, a + " has format version 7, this program reads up to 4"},
	} {
		if err := serves(tt.disk, second.Info); errors.Is(err, ErrDamaged) != tt.damaged || !strings.Contains(fmt.Sprint(err), tt.says) {
			t.Errorf("%s: err = %v, want damage %v that says %q", name, err, tt.damaged, tt.says)
		}
	}
}
