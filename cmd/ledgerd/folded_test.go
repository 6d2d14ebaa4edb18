package main

import (
	"slices"
	"sort"
	"testing"
)

// accountState is an account in an update, or as REST lists it.
type accountState struct {
	Pubkey, Owner         string
	Lamports              uint64
	Executable            bool
	Commitment, Timestamp string // of an update
}

// place is a point of a ledger at which a node can stand.
type place struct{ slot, seq uint64 }

// heard is what is kept of an update, the end of a slot or a rollback. The slot of a rollback is that it goes back to.
type heard struct {
	kind string
	place
	account accountState // of an update
}

// ends returns whether the run ends a slot at a place.
func ends(run []heard, p place) bool {
	return slices.ContainsFunc(run, func(h heard) bool { return h.kind == "slot_end" && h.place == p })
}

// sameFrames compares what two clients were told after a number, as far as both were: the same frames under the same numbers, whoever was
// told them at once and whoever on coming back. It returns how many frames each was told.
func sameFrames(t testing.TB, name, otherName string, after uint64, run, other []heard) (n, otherN int) {
	t.Helper()
	behind := func(run []heard) []heard {
		return run[sort.Search(len(run), func(i int) bool { return run[i].seq > after }):]
	}
	run, other = behind(run), behind(other)
	for i := range min(len(run), len(other)) {
		if run[i] != other[i] {
			t.Errorf("%s: after number %d it is told %+v, %s %+v", name, after, run[i], otherName, other[i])
			break
		}
	}
	return len(run), len(other)
}
