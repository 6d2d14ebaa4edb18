package snapshot

import (
	"errors"
	"fmt"
	"slices"
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
