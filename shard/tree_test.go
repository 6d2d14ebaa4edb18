package shard

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// listed is what a tree lists under one number and key.
type listed struct {
	number uint64
	key    ledger.Pubkey
	ref    ref
}

func (a listed) compare(b listed) int {
	if a.number != b.number {
		if a.number < b.number {
			return -1
		}
		return 1
	}
	return a.key.Compare(&b.key)
}

// TestTreeEqualsSortedList sets and removes at random, with many equal numbers, freezes now and then,
// and compares tree and copies with sorted lists.
func TestTreeEqualsSortedList(t *testing.T) {
	for round, spread := range []uint64{1, 3, 1000, 1 << 60} {
		r := seeded(t, uint64(round))
		v := newVault()
		var want []listed
		type copied struct {
			tree tree
			want []listed
		}
		tree := tree{records: &v.records}
		var copies []copied
		records := make(map[ledger.Pubkey]ref)
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
				got := tree.remove(e.number, &e.key)
				if !found && got != 0 || found && got != want[at].ref {
					t.Fatalf("round %d, step %d: removed record %d, listed: %v", round, step, got, found)
				}
				if found {
					want = slices.Delete(want, at, at+1)
				}
			} else {
				if e.ref = records[e.key]; e.ref == 0 || r.IntN(3) == 0 {
					e.ref = v.put(&ledger.Account{Pubkey: e.key})
					records[e.key] = e.ref
				}
				before := tree.set(e.number, &e.key, e.ref)
				if found != (before != 0) || found && before != want[at].ref {
					t.Fatalf("round %d, step %d: set in the place of record %d, listed: %v", round, step, before, found)
				}
				if !found {
					want = slices.Insert(want, at, e)
				}
				want[at] = e
			}
			if step%4000 == 999 {
				copies = append(copies, copied{tree.freeze(&v.records), slices.Clone(want)})
			}
			if step%1000 == 0 {
				checkTree(t, r, &tree, want)
			}
		}
		for range len(want) {
			e := want[r.IntN(len(want))]
			at, _ := slices.BinarySearchFunc(want, e, listed.compare)
			want = slices.Delete(want, at, at+1)
			tree.remove(e.number, &e.key)
		}
		if checkTree(t, r, &tree, nil); tree.root != nil {
			t.Error("an empty tree has a root")
		}
		for _, c := range copies {
			checkTree(t, r, &c.tree, c.want)
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// checkTree compares all that a tree lists, from its beginning and from somewhere within, and what it
// finds. Every bound must hold.
func checkTree(t *testing.T, r *rand.Rand, tree *tree, want []listed) {
	t.Helper()
	if tree.len() != len(want) {
		t.Errorf("%d entries are counted, want %d", tree.len(), len(want))
	}
	from, limit := 0, len(want)
	start := listed{}
	if len(want) > 0 && r.IntN(2) == 0 {
		from = r.IntN(len(want))
		limit = r.IntN(len(want) - from)
		start = want[from]
	}
	var got []listed
	tree.ascend(start.number, &start.key, func(number uint64, at ref) bool {
		if len(got) == limit {
			return false
		}
		got = append(got, listed{number, tree.records.at(at).key, at})
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
		var found ref
		if at, ok := slices.BinarySearchFunc(want, e, listed.compare); ok {
			found = want[at].ref
		}
		if got := tree.get(e.number, &e.key); got != found {
			t.Errorf("record %d is found, want %d", got, found)
		}
	}
	if tree.root != nil {
		checkBranch(t, tree, tree.root, tree.root.level)
	}
}

func checkBranch(t *testing.T, tree *tree, b *branch, level int) (first, last listed) {
	t.Helper()
	if b.level != level || b.n < 1 || b.n > branchMost {
		t.Fatalf("a branch of level %d has %d children, want level %d", b.level, b.n, level)
	}
	for i := range b.n {
		var low, high listed
		if level > 1 {
			low, high = checkBranch(t, tree, b.kids[i], level-1)
		} else {
			l := b.leaves[i]
			if l.n < 1 || l.n > leafMost {
				t.Fatalf("a leaf has %d entries", l.n)
			}
			low = listed{number: l.numbers[0], key: tree.records.at(l.refs[0]).key}
			high = listed{number: l.numbers[l.n-1], key: tree.records.at(l.refs[l.n-1]).key}
		}
		bound := listed{number: b.numbers[i], key: b.keys[i]}
		if i > 0 && (bound.compare(low) > 0 || bound.compare(last) <= 0) {
			t.Fatalf("child %d of level %d is not within its bounds", i, level)
		}
		if last = high; i == 0 {
			first = low
		}
	}
	return first, last
}

// TestLoadedTreeIsATree loads trees of all sizes around those at which they grow, and writes to them.
func TestLoadedTreeIsATree(t *testing.T) {
	r := seeded(t, 1)
	v := newVault()
	const most = 120_000
	all := make([]listed, most)
	for i := range all {
		k := key(i)
		all[i] = listed{k.Prefix() >> 40, k, v.put(&ledger.Account{Pubkey: k})}
	}
	slices.SortFunc(all, listed.compare)
	level := loadFill * branchMost * 7 / 8
	for _, n := range []int{0, 1, 2, loadFill, loadFill + 1, level - 1, level, level + 1, 2*level + 1, 12 * level, most} {
		loader := treeLoader{records: &v.records}
		want := slices.Clone(all[:n])
		for _, e := range want {
			loader.add(e.number, e.ref)
		}
		tree := loader.tree()
		checkTree(t, r, &tree, want)
		for range 2000 {
			e := all[r.IntN(len(all))]
			at, found := slices.BinarySearchFunc(want, e, listed.compare)
			switch {
			case found && r.IntN(2) == 0:
				tree.remove(e.number, &e.key)
				want = slices.Delete(want, at, at+1)
			case !found:
				tree.set(e.number, &e.key, e.ref)
				want = slices.Insert(want, at, e)
			}
		}
		if checkTree(t, r, &tree, want); t.Failed() {
			t.Fatalf("%d entries", n)
		}
	}
}

// TestTreeStaysWellFilled inserts at random and checks that leaves are fuller than those of trees
// that only split.
func TestTreeStaysWellFilled(t *testing.T) {
	r := seeded(t, 1)
	v := newVault()
	tree := tree{records: &v.records}
	const n = 100_000
	for i := range n {
		k := key(r.IntN(1 << 40))
		if i%2 == 0 {
			k = key(i)
		}
		tree.set(k.Prefix(), &k, v.put(&ledger.Account{Pubkey: k}))
	}
	leaves := 0
	var count func(b *branch)
	count = func(b *branch) {
		for i := range b.n {
			if b.level > 1 {
				count(b.kids[i])
			} else {
				leaves++
			}
		}
	}
	count(tree.root)
	fill := float64(tree.len()) / float64(leaves*leafMost)
	if t.Logf("leaves are %.2f full", fill); fill < 0.75 {
		t.Errorf("leaves are %.2f full, want 0.75 at least", fill)
	}
}
