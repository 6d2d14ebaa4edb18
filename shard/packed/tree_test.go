package packed

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// listed is what a tree lists under one number and key.
type listed struct {
	number uint64
	key    ledger.Pubkey
	ref    arena.Ref
}

func (a listed) compare(b listed) int {
	return cmp.Or(cmp.Compare(a.number, b.number), a.key.Compare(&b.key))
}

// TestTreeEqualsSortedList sets and removes at random, with many equal numbers, copies now and then,
// and compares tree and copies with sorted lists.
func TestTreeEqualsSortedList(t *testing.T) {
	for round, spread := range []uint64{1, 3, 1000, 1 << 60} {
		r := seeded(t, uint64(round))
		v := new(recordStore)
		var want []listed
		type copied struct {
			listings *btree.BTreeG[listing]
			want     []listed
		}
		tree := newTree(&v.records)
		var copies []copied
		records := make(map[ledger.Pubkey]arena.Ref)
		for step := range 30_000 {
			e := listed{key: key(r.IntN(12_000))}
			e.number = e.key.Prefix() % spread
			at, found := slices.BinarySearchFunc(want, e, listed.compare)
			// It grows in the first half and shrinks in the second, down to nothing.
			if r.IntN(5) < 1+3*step/30_000 || step > 28_000 {
				if step > 28_000 && len(want) > 0 {
					at, found = r.IntN(len(want)), true
					e = want[at]
				}
				if r := records[e.key]; r != 0 {
					tree.remove(e.number, r) // which may be another one than is listed
				}
				if found {
					want = slices.Delete(want, at, at+1)
				}
			} else {
				if e.ref = records[e.key]; e.ref == 0 || r.IntN(3) == 0 {
					e.ref = v.put(&ledger.Account{Pubkey: e.key})
					records[e.key] = e.ref
				}
				if tree.set(e.number, e.ref); !found {
					want = slices.Insert(want, at, e)
				}
				want[at] = e
			}
			if step%4000 == 999 {
				copies = append(copies, copied{tree.listings.Copy(), slices.Clone(want)})
			}
			if step%1000 == 0 {
				checkTree(t, r, tree, want)
			}
		}
		for range len(want) {
			at := r.IntN(len(want))
			tree.remove(want[at].number, want[at].ref)
			want = slices.Delete(want, at, at+1)
		}
		checkTree(t, r, tree, nil)
		for _, c := range copies {
			tree.listings = c.listings
			checkTree(t, r, tree, c.want)
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// checkTree compares all that a tree lists, from its beginning and from somewhere within, and what it
// finds.
func checkTree(t *testing.T, r *rand.Rand, tree *tree, want []listed) {
	t.Helper()
	if tree.listings.Len() != len(want) {
		t.Errorf("%d entries are counted, want %d", tree.listings.Len(), len(want))
	}
	from, limit := 0, len(want)
	start := listed{}
	if len(want) > 0 && r.IntN(2) == 0 {
		from = r.IntN(len(want))
		limit = r.IntN(len(want) - from)
		start = want[from]
	}
	var got []listed
	tree.ascend(start.number, &start.key, func(number uint64, at arena.Ref) bool {
		if len(got) == limit {
			return false
		}
		got = append(got, listed{number, tree.records.At(at).key, at})
		return true
	})
	if !slices.Equal(got, want[from:from+limit]) {
		t.Errorf("%d entries from number %d on, want %d others", len(got), from, limit)
	}
	for range 100 {
		e := listed{key: key(r.IntN(12_000))}
		if len(want) > 0 && r.IntN(2) == 0 {
			e = want[r.IntN(len(want))]
		}
		var found arena.Ref
		if at, ok := slices.BinarySearchFunc(want, e, listed.compare); ok {
			found = want[at].ref
		}
		if got := tree.get(e.number, &e.key); got != found {
			t.Errorf("record %d is found, want %d", got, found)
		}
	}
}

// TestLoadedTreeIsATree loads trees of all sizes around those at which they grow, and writes to them.
func TestLoadedTreeIsATree(t *testing.T) {
	r := seeded(t, 1)
	v := new(recordStore)
	const most = 120_000
	all := make([]listed, most)
	for i := range all {
		k := key(i)
		all[i] = listed{k.Prefix() >> 40, k, v.put(&ledger.Account{Pubkey: k})}
	}
	slices.SortFunc(all, listed.compare)
	for _, n := range []int{0, 1, 2, 2*treeDegree - 1, 2 * treeDegree, 2 * treeDegree * treeDegree, most} {
		tree := newTree(&v.records)
		want := slices.Clone(all[:n])
		members := make([]member, n)
		for i, e := range want {
			members[i] = member{uint32(e.number >> 32), uint32(e.number), e.ref}
		}
		tree.load(members)
		checkTree(t, r, tree, want)
		for range 2000 {
			e := all[r.IntN(len(all))]
			at, found := slices.BinarySearchFunc(want, e, listed.compare)
			switch {
			case found && r.IntN(2) == 0:
				tree.remove(e.number, e.ref)
				want = slices.Delete(want, at, at+1)
			case !found:
				tree.set(e.number, e.ref)
				want = slices.Insert(want, at, e)
			}
		}
		if checkTree(t, r, tree, want); t.Failed() {
			t.Fatalf("%d entries", n)
		}
	}
}
