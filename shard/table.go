package shard

import (
	"math"
	"slices"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// newest reads whatever was applied last.
const newest = ledger.Version(math.MaxUint64)

// degree of the B-trees. With entries compared inline, 64 measured best for both
// lookups and memory on the reference machine.
const degree = 64

// entry is one value of the base: the first 8 bytes of its key inline, so that most
// comparisons follow no pointer, and the value that holds the whole key.
type entry[V any] struct {
	prefix uint64
	value  *V
}

// cell is one value of the overlay. An absent cell says that the key had no value from
// its version on; its value then serves as the key only.
type cell[V any] struct {
	prefix  uint64
	version ledger.Version
	value   *V
	absent  bool
}

// change is what one version wrote.
type change[V any] struct {
	version ledger.Version
	cells   []cell[V]
}

// keyed tells a table how to order values by the key inside them.
type keyed[V any] struct {
	prefix  func(*V) uint64
	compare func(a, b *V) int // of whole keys; asked only where prefixes are equal
}

// table is one versioned map. Any value can stand for its key, so a lookup takes a
// probe: a value of which only the key is set. Only the shard's goroutine uses it.
type table[V any] struct {
	keyed[V]
	base    *btree.BTreeG[entry[V]]
	overlay *btree.BTreeG[cell[V]]
	journal []change[V] // of the versions not yet folded, oldest first

	ofBase, ofOverlay shedder

	// The tree's callbacks and what they leave behind, kept here so that a read
	// allocates nothing.
	first   func(cell[V]) bool
	hit     cell[V]
	collect func(cell[V]) bool
	run     []cell[V]
	runKey  *V
	dropped []*V
}

func newTable[V any](k keyed[V]) *table[V] {
	t := &table[V]{keyed: k}
	options := btree.Options{NoLocks: true, Degree: degree}
	t.base = btree.NewBTreeGOptions(func(a, b entry[V]) bool {
		if a.prefix != b.prefix {
			return a.prefix < b.prefix
		}
		return k.compare(a.value, b.value) < 0
	}, options)
	// Newer versions of a key come first, so that the first cell at or after
	// (key, V) is the newest at or below V.
	t.overlay = btree.NewBTreeGOptions(func(a, b cell[V]) bool {
		if a.prefix != b.prefix {
			return a.prefix < b.prefix
		}
		if c := k.compare(a.value, b.value); c != 0 {
			return c < 0
		}
		return a.version > b.version
	}, options)
	t.first = func(c cell[V]) bool {
		t.hit = c
		return false
	}
	t.collect = func(c cell[V]) bool {
		if !t.sameKey(c, t.runKey) {
			return false
		}
		t.run = append(t.run, c)
		return true
	}
	return t
}

func (t *table[V]) sameKey(c cell[V], key *V) bool {
	return c.prefix == t.prefix(key) && t.compare(c.value, key) == 0
}

// at returns the value of key at version v, nil if it has none.
func (t *table[V]) at(key *V, v ledger.Version) *V {
	p := t.prefix(key)
	if t.overlay.Len() > 0 {
		t.hit = cell[V]{}
		t.overlay.Ascend(cell[V]{prefix: p, version: v, value: key}, t.first)
		if t.hit.value != nil && t.sameKey(t.hit, key) {
			if t.hit.absent {
				return nil
			}
			return t.hit.value
		}
	}
	e, _ := t.base.Get(entry[V]{p, key})
	return e.value
}

// put writes the value of key as of version v, nil for none. Versions only grow.
func (t *table[V]) put(v ledger.Version, key, value *V) {
	c := cell[V]{prefix: t.prefix(key), version: v, value: value}
	if value == nil {
		c.value, c.absent = key, true
	}
	t.overlay.Set(c)
	t.ofOverlay.writes++
	if n := len(t.journal); n == 0 || t.journal[n-1].version != v {
		t.journal = append(t.journal, change[V]{version: v})
	}
	last := &t.journal[len(t.journal)-1]
	last.cells = append(last.cells, c)
}

// expect makes room for n values of version v, which is about to be written.
func (t *table[V]) expect(v ledger.Version, n int) {
	t.journal = append(t.journal, change[V]{version: v, cells: make([]cell[V], 0, n)})
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

// writtenSince returns the keys written by version first or later, each once, in order.
func (t *table[V]) writtenSince(first ledger.Version) []*V {
	var cells []cell[V]
	for i := len(t.journal) - 1; i >= 0 && t.journal[i].version >= first; i-- {
		cells = append(cells, t.journal[i].cells...)
	}
	slices.SortFunc(cells, func(a, b cell[V]) int {
		if a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return t.compare(a.value, b.value)
	})
	var keys []*V
	for _, c := range cells {
		if len(keys) == 0 || !t.sameKey(c, keys[len(keys)-1]) {
			keys = append(keys, c.value)
		}
	}
	return keys
}

// fold moves values of versions up to v into the base, at most budget keys at a time,
// and reports whether there is more to do. For every key it calls settled with the value
// now in the base (nil for none) and the values no read can reach any more.
func (t *table[V]) fold(v ledger.Version, budget int, settled func(now *V, dropped []*V)) (more bool) {
	for len(t.journal) > 0 && t.journal[0].version <= v {
		oldest := &t.journal[0]
		for len(oldest.cells) > 0 {
			if budget == 0 {
				return true
			}
			budget--
			key := oldest.cells[len(oldest.cells)-1].value
			oldest.cells = oldest.cells[:len(oldest.cells)-1]
			t.foldKey(v, key, settled)
		}
		t.journal[0] = change[V]{}
		t.journal = t.journal[1:]
	}
	return false
}

func (t *table[V]) foldKey(v ledger.Version, key *V, settled func(now *V, dropped []*V)) {
	t.run, t.runKey = t.run[:0], key
	t.overlay.Ascend(cell[V]{prefix: t.prefix(key), version: v, value: key}, t.collect)
	if len(t.run) == 0 {
		return // folded already, with an earlier version of the key
	}
	t.ofBase.writes++
	t.ofOverlay.writes += len(t.run)
	now := t.run[0]
	var before entry[V]
	if now.absent {
		before, _ = t.base.Delete(entry[V]{now.prefix, key})
		now.value = nil
	} else {
		before, _ = t.base.Set(entry[V]{now.prefix, now.value})
	}
	dropped := t.dropped[:0]
	if before.value != nil {
		dropped = append(dropped, before.value)
	}
	for i, c := range t.run {
		t.overlay.Delete(c)
		if i > 0 && !c.absent {
			dropped = append(dropped, c.value)
		}
	}
	if settled != nil {
		settled(now.value, dropped)
	}
	t.dropped = dropped
}

// shed lets the trees go of what they do not list any more.
func (t *table[V]) shed() {
	shed(&t.ofBase, t.base)
	shed(&t.ofOverlay, t.overlay)
}

// versions calls visit for every value of key in the overlay until it returns false.
func (t *table[V]) versions(key *V, visit func(*V) bool) {
	t.overlay.Ascend(cell[V]{prefix: t.prefix(key), version: newest, value: key}, func(c cell[V]) bool {
		return t.sameKey(c, key) && (c.absent || visit(c.value))
	})
}

// ascend calls visit, in key order, for every value at version v whose key is not below
// from, until it returns false.
func (t *table[V]) ascend(from *V, v ledger.Version, visit func(*V) bool) {
	// Both layers are walked at once; the overlay's newest value at or below v hides
	// older ones and the base's.
	layer := t.overlay.Iter()
	defer layer.Release()
	more := layer.Seek(cell[V]{prefix: t.prefix(from), version: newest, value: from})
	// next leaves the next overlay value that v can see in c.
	next := func() (c cell[V], ok bool) {
		for more {
			c = layer.Item()
			if c.version > v {
				more = layer.Next()
				continue
			}
			for more = layer.Next(); more && t.sameKey(layer.Item(), c.value); more = layer.Next() {
			}
			return c, true
		}
		return c, false
	}
	over, hasOver := next()
	stopped := false
	t.base.Ascend(entry[V]{t.prefix(from), from}, func(e entry[V]) bool {
		for hasOver {
			order := t.compare(over.value, e.value)
			if order > 0 {
				break
			}
			if !over.absent && !visit(over.value) {
				stopped = true
				return false
			}
			over, hasOver = next()
			if order == 0 {
				return true
			}
		}
		stopped = !visit(e.value)
		return !stopped
	})
	for ; hasOver && !stopped; over, hasOver = next() {
		stopped = !over.absent && !visit(over.value)
	}
}
