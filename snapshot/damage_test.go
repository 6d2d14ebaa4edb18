package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// smallSnapshot returns a disk with one snapshot of a few items and one history file.
func smallSnapshot(t testing.TB) (*vfstest.Memory, *state, Written) {
	t.Helper()
	disk := vfstest.NewMemory()
	st := testState(20, 14, 7, 3)
	return disk, st, write(t, openTestStore(t, disk), st)
}

// replaced returns a copy of the disk on which the file has other bytes.
func replaced(t testing.TB, disk *vfstest.Memory, name string, content []byte) *vfstest.Memory {
	t.Helper()
	disk = disk.Clone()
	must(t, disk.WriteFile(path.Join(testDir, name), content))
	return disk
}

func content(t testing.TB, disk *vfstest.Memory, name string) []byte {
	t.Helper()
	b, err := disk.ReadFile(path.Join(testDir, name))
	must(t, err)
	return b
}

// serves opens and loads a snapshot and returns the first error.
func serves(disk vfs.FS, i Info) error {
	snap, err := ViewStore(disk, testDir, nil).Open(i)
	if err != nil {
		return err
	}
	_, err = load(snap, 2)
	return err
}

// TestEveryHarmIsRefused by who loads the snapshot, and found by Verify and Prune.
func TestEveryHarmIsRefused(t *testing.T) {
	disk, _, w := smallSnapshot(t)
	if err := serves(disk, w.Info); err != nil {
		t.Fatalf("before any damage: %v", err)
	}
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
			for _, mask := range []byte{1, 0x80, 0xff} {
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
				if !errors.Is(err, ErrDamaged) {
					t.Fatalf("%s: Verify: %v, want damage", what, err)
				}
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
	tests := map[string]struct {
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
	}
	for name, tt := range tests {
		if err := serves(tt.disk, second.Info); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: err = %v, want %v that says %q", name, err, tt.want, tt.says)
		}
	}
}

func TestNewerFormatIsRefusedAndBothVersionsAreNamed(t *testing.T) {
	disk, _, w := smallSnapshot(t)
	for _, name := range []string{w.Name, w.Meta.History[0].Name} {
		b := content(t, disk, name)
		newer := appendHeader(nil, string(b[:8]))
		newer[8] = 7
		copy(b, resealHeader(newer))
		err := serves(replaced(t, disk, name, b), w.Info)
		var version *FormatError
		if !errors.As(err, &version) || version.Version != 7 || version.Newest != formatVersion || errors.Is(err, ErrDamaged) {
			t.Errorf("%s of version 7: err = %v, want a FormatError", name, err)
		}
		if want := name + " has format version 7, this program reads up to 2"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of version 7: %v, want it to say %q", name, err, want)
		}
	}
}
