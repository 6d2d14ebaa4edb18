package shard

import (
	"math"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// newest reads whatever was applied last.
const newest = ledger.Version(math.MaxUint64)

// degree of the B-trees that point at values. With entries compared inline, 64 measured best
// for both lookups and memory on the reference machine.
const degree = 64

// entry is one value of the base: the first 8 bytes of its key inline, so that most
// comparisons follow no pointer, and the value that holds the whole key.
type entry[V any] struct {
	prefix uint64
	value  *V
}

// table is one versioned map of values that are there anyway, such as the transactions of
// blocks: its base points at them. Only the shard's goroutine uses it.
type table[V any] struct {
	*overlay[V]
	base   *btree.BTreeG[entry[V]]
	ofBase shedder
}

func newTable[V any](k keyed[V]) *table[V] {
	return &table[V]{overlay: newOverlay(k), base: btree.NewBTreeGOptions(func(a, b entry[V]) bool {
		if a.prefix != b.prefix {
			return a.prefix < b.prefix
		}
		return k.compare(a.value, b.value) < 0
	}, btree.Options{NoLocks: true, Degree: degree})}
}

// at returns the value of key at version v, nil if it has none.
func (t *table[V]) at(key *V, v ledger.Version) *V {
	if value, ok := t.over(key, v); ok {
		return value
	}
	e, _ := t.base.Get(entry[V]{t.prefix(key), key})
	return e.value
}

// putBase writes the value of key below every version of the overlay, nil for none.
// It is for the time before anybody reads, and for values that retention gave up.
func (t *table[V]) putBase(key, value *V) {
	t.ofBase.writes++
	if value == nil {
		t.base.Delete(entry[V]{t.prefix(key), key})
		return
	}
	t.base.Set(entry[V]{t.prefix(value), value})
}

// fold moves values of versions up to v into the base, at most budget keys at a time,
// and reports whether there is more to do.
func (t *table[V]) fold(v ledger.Version, budget int) (more bool) {
	return t.foldCells(v, budget, func(now cell[V]) {
		if now.absent {
			t.putBase(now.value, nil)
		} else {
			t.putBase(now.value, now.value)
		}
	})
}

// shed releases the memory of stale nodes.
func (t *table[V]) shed() {
	shed(&t.ofBase, t.base)
	shed(&t.ofCells, t.cells)
}

// freeze returns a table that holds what t holds now, to be walked by another goroutine.
func (t *table[V]) freeze() *table[V] {
	return &table[V]{overlay: t.freezeCells(), base: copyOf(&t.ofBase, t.base)}
}

// ascend calls visit, in key order, for every value at version v whose key is not below
// from, until it returns false.
func (t *table[V]) ascend(from *V, v ledger.Version, visit func(*V) bool) {
	t.ascendOver(from, v, func(each func(uint64, *V) bool) {
		t.base.Ascend(entry[V]{t.prefix(from), from}, func(e entry[V]) bool { return each(e.prefix, e.value) })
	}, visit)
}
