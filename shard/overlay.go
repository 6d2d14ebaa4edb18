package shard

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

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

// keyed tells how to order values by the key inside them.
type keyed[V any] struct {
	prefix  func(*V) uint64
	compare func(a, b *V) int // of whole keys; asked only where prefixes are equal
}

// overlay is the values of the versions not folded yet. Any value can stand for its
// key, so a lookup takes a probe: a value of which only the key is set.
type overlay[V any] struct {
	keyed[V]
	cells   *btree.BTreeG[cell[V]]
	journal []change[V] // oldest version first
	ofCells shedder

	// The tree's callbacks and what they leave behind, kept here so that a read
	// allocates nothing.
	first   func(cell[V]) bool
	hit     cell[V]
	collect func(cell[V]) bool
	run     []cell[V]
	runKey  *V
}

func newOverlay[V any](k keyed[V]) *overlay[V] {
	o := &overlay[V]{keyed: k}
	// Newer versions of a key come first, so that the first cell at or after
	// (key, V) is the newest at or below V.
	o.cells = btree.NewBTreeGOptions(func(a, b cell[V]) bool {
		if a.prefix != b.prefix {
			return a.prefix < b.prefix
		}
		if c := k.compare(a.value, b.value); c != 0 {
			return c < 0
		}
		return a.version > b.version
	}, btree.Options{NoLocks: true, Degree: degree})
	o.first = func(c cell[V]) bool {
		o.hit = c
		return false
	}
	o.collect = func(c cell[V]) bool {
		if !o.sameKey(c, o.runKey) {
			return false
		}
		o.run = append(o.run, c)
		return true
	}
	return o
}

// Len returns how many values there are, of all versions.
func (o *overlay[V]) Len() int { return o.cells.Len() }

func (o *overlay[V]) sameKey(c cell[V], key *V) bool {
	return c.prefix == o.prefix(key) && o.compare(c.value, key) == 0
}

// over returns the value of key at version v, nil if it has none, and whether it is for
// the overlay to say.
func (o *overlay[V]) over(key *V, v ledger.Version) (value *V, ok bool) {
	if o.cells.Len() == 0 {
		return nil, false
	}
	o.hit = cell[V]{}
	o.cells.Ascend(cell[V]{prefix: o.prefix(key), version: v, value: key}, o.first)
	if o.hit.value == nil || !o.sameKey(o.hit, key) {
		return nil, false
	}
	if o.hit.absent {
		return nil, true
	}
	return o.hit.value, true
}

// put writes the value of key as of version v, nil for none. Versions only grow.
func (o *overlay[V]) put(v ledger.Version, key, value *V) {
	c := cell[V]{prefix: o.prefix(key), version: v, value: value}
	if value == nil {
		c.value, c.absent = key, true
	}
	o.cells.Set(c)
	o.ofCells.writes++
	if n := len(o.journal); n == 0 || o.journal[n-1].version != v {
		o.journal = append(o.journal, change[V]{version: v})
	}
	last := &o.journal[len(o.journal)-1]
	last.cells = append(last.cells, c)
}

// writtenSince returns the keys written by version first or later, each once, in order.
func (o *overlay[V]) writtenSince(first ledger.Version) []*V {
	var cells []cell[V]
	for i := len(o.journal) - 1; i >= 0 && o.journal[i].version >= first; i-- {
		cells = append(cells, o.journal[i].cells...)
	}
	slices.SortFunc(cells, func(a, b cell[V]) int {
		if a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return o.compare(a.value, b.value)
	})
	var keys []*V
	for _, c := range cells {
		if len(keys) == 0 || !o.sameKey(c, keys[len(keys)-1]) {
			keys = append(keys, c.value)
		}
	}
	return keys
}

// foldCells takes out the values of versions up to v, at most budget keys at a time, and
// reports whether there is more to do. For every key it calls settle with the newest one.
func (o *overlay[V]) foldCells(v ledger.Version, budget int, settle func(now cell[V])) (more bool) {
	for len(o.journal) > 0 && o.journal[0].version <= v {
		oldest := &o.journal[0]
		for len(oldest.cells) > 0 {
			if budget == 0 {
				return true
			}
			budget--
			key := oldest.cells[len(oldest.cells)-1].value
			oldest.cells = oldest.cells[:len(oldest.cells)-1]
			o.run, o.runKey = o.run[:0], key
			o.cells.Ascend(cell[V]{prefix: o.prefix(key), version: v, value: key}, o.collect)
			if len(o.run) == 0 {
				continue // folded already, with an earlier version of the key
			}
			o.ofCells.writes += len(o.run)
			for _, c := range o.run {
				o.cells.Delete(c)
			}
			settle(o.run[0])
		}
		o.journal[0] = change[V]{}
		o.journal = o.journal[1:]
	}
	return false
}

// freezeCells returns an overlay that holds what o holds now, to be walked by another goroutine.
func (o *overlay[V]) freezeCells() *overlay[V] {
	return &overlay[V]{keyed: o.keyed, cells: copyOf(&o.ofCells, o.cells)}
}

// ascendOver calls visit, in key order, for every value at version v whose key is not below
// from, until it returns false. Below walks the base so; it hands over prefixes besides.
func (o *overlay[V]) ascendOver(from *V, v ledger.Version, below func(func(uint64, *V) bool), visit func(*V) bool) {
	// Both layers are walked at once; the overlay's newest value at or below v hides
	// older ones and the base's.
	layer := o.cells.Iter()
	defer layer.Release()
	more := layer.Seek(cell[V]{prefix: o.prefix(from), version: newest, value: from})
	// next leaves the next overlay value that v can see in c.
	next := func() (c cell[V], ok bool) {
		for more {
			c = layer.Item()
			if c.version > v {
				more = layer.Next()
				continue
			}
			for more = layer.Next(); more && o.sameKey(layer.Item(), c.value); more = layer.Next() {
			}
			return c, true
		}
		return c, false
	}
	over, hasOver := next()
	stopped := false
	below(func(prefix uint64, value *V) bool {
		for hasOver {
			order := cmp.Compare(over.prefix, prefix)
			if order == 0 {
				order = o.compare(over.value, value)
			}
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
		stopped = !visit(value)
		return !stopped
	})
	for ; hasOver && !stopped; over, hasOver = next() {
		stopped = !over.absent && !visit(over.value)
	}
}
