package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
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
	for name, tt := range map[string]struct {
		disk *vfstest.Memory
		want error
		says string
	}{
		"snapshots swapped":            {swap(first.Name, second.Name), ErrDamaged, "another's name"},
		"history files swapped":        {swap(a, b), ErrDamaged, "another file"},
		"history file missing":         {without(a), ErrDamaged, "is missing"},
		"snapshot missing":             {without(second.Name), fs.ErrNotExist, "cannot open"},
		"history in a snapshot's name": {replaced(t, disk, second.Name, content(t, disk, a)), ErrDamaged, "the header says"},
		"snapshot in a history's name": {replaced(t, disk, a, content(t, disk, first.Name)), ErrDamaged, "the header says"},
	} {
		if err := serves(tt.disk, second.Info); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: err = %v, want %v that says %q", name, err, tt.want, tt.says)
		}
	}
}

// F51: a newer format is refused, and both versions are named.
func TestNewerFormatIsRefused(t *testing.T) {
	disk, _, w := smallSnapshot(t)
	for _, name := range []string{w.Name, w.Meta.History[0].Name} {
		b := content(t, disk, name)
		newer := appendHeader(nil, string(b[:8]))
		newer[8] = 7
		copy(b, resealHeader(newer))
		err := serves(replaced(t, disk, name, b), w.Info)
		want := FormatError{File: name, Version: 7, Newest: formatVersion}
		var version *FormatError
		if !errors.As(err, &version) || *version != want || errors.Is(err, ErrDamaged) ||
			!strings.Contains(err.Error(), name+" has format version 7, this program reads up to 4") {
			t.Errorf("%s of version 7: err = %v, want %v", name, err, &want)
		}
	}
}
