package shard

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// thing is a value whose keys share prefixes, so that whole keys have to be compared.
type thing struct{ key, value int }

func newThings() *table[thing] {
	return newTable(keyed[thing]{
		prefix:  func(t *thing) uint64 { return uint64(t.key / 3) },
		compare: func(a, b *thing) int { return cmp.Compare(a.key, b.key) },
	})
}

// plain is a table as one map for each version.
type plain struct {
	versions map[ledger.Version]map[int]int
	newest   ledger.Version
	folded   ledger.Version
}

// next begins a version that stands as the newest does.
func (p *plain) next() map[int]int {
	now := make(map[int]int)
	for k, v := range p.versions[p.newest] {
		now[k] = v
	}
	p.newest++
	p.versions[p.newest] = now
	return now
}

const things = 30

// TestTableEqualsPlainMaps writes, restores and folds at random and reads every version held.
func TestTableEqualsPlainMaps(t *testing.T) {
	r := seeded(t, 1)
	for round := range 40 {
		table := newThings()
		p := &plain{versions: map[ledger.Version]map[int]int{0: {}}}
		for step := range 60 {
			switch n := r.IntN(10); {
			case n < 7:
				writeThings(r, table, p)
			case n < 8 && p.newest > p.folded+1:
				restoreThings(r, table, p)
			case p.newest > p.folded:
				foldThings(t, r, table, p)
			}
			for v := p.folded; v <= p.newest; v++ {
				compareThings(t, r, table, p.versions[v], v)
			}
			if t.Failed() {
				t.Fatalf("round %d, step %d", round, step)
			}
		}
		if table.overlay.Len() == 0 != (p.newest == p.folded || len(table.journal) == 0) {
			t.Fatalf("%d cells in the overlay, newest version %d, folded %d", table.overlay.Len(), p.newest, p.folded)
		}
	}
}

func writeThings(r *rand.Rand, table *table[thing], p *plain) {
	now := p.next()
	for range r.IntN(8) {
		k := r.IntN(things)
		if r.IntN(4) == 0 {
			delete(now, k)
			table.put(p.newest, &thing{key: k}, nil)
			continue
		}
		now[k] = r.Int()
		value := &thing{k, now[k]}
		table.put(p.newest, value, value)
	}
}

// restoreThings puts back what stood before some version, as a new version.
func restoreThings(r *rand.Rand, table *table[thing], p *plain) {
	first := p.folded + 1 + ledger.Version(r.IntN(int(p.newest-p.folded)))
	keys := table.writtenSince(first)
	if !slices.IsSortedFunc(keys, func(a, b *thing) int { return cmp.Compare(a.key, b.key) }) {
		panic("written keys are out of order")
	}
	before := p.versions[first-1]
	p.newest++
	p.versions[p.newest] = before
	for _, k := range keys {
		table.put(p.newest, k, table.at(k, first-1))
	}
}

// foldThings folds some versions, a few keys at a time, and reads in between.
func foldThings(t *testing.T, r *rand.Rand, table *table[thing], p *plain) {
	p.folded += 1 + ledger.Version(r.IntN(int(p.newest-p.folded)))
	for table.fold(p.folded, 1+r.IntN(4)) {
		compareThings(t, r, table, p.versions[p.folded], p.folded)
		compareThings(t, r, table, p.versions[p.newest], p.newest)
	}
}

func compareThings(t *testing.T, r *rand.Rand, table *table[thing], want map[int]int, v ledger.Version) {
	t.Helper()
	for k := range things {
		got := table.at(&thing{key: k}, v)
		if value, held := want[k]; held != (got != nil) || held && (got.key != k || got.value != value) {
			t.Errorf("version %d: key %d is %v, want %d (held %v)", v, k, got, value, held)
		}
	}
	from, limit := r.IntN(things), r.IntN(things)
	var got, keys []int
	table.ascend(&thing{key: from}, v, func(x *thing) bool {
		if len(got) == limit {
			return false
		}
		got = append(got, x.key)
		return true
	})
	for k := range want {
		if k >= from {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	if keys = keys[:min(limit, len(keys))]; !slices.Equal(got, keys) {
		t.Errorf("version %d: ascending from %d up to %d: %v, want %v", v, from, limit, got, keys)
	}
}
