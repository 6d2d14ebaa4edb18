package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// ascent reads an overlay at one version, key after key in ascending order. Most keys are not in
// the overlay, and whoever asks for many in order mostly finds that by one comparison with the
// next cell.
type ascent[V any] struct {
	over    *overlay[V]
	version ledger.Version
	layer   btree.IterG[cell[V]]
	next    cell[V] // the first that is not below the last key
	begun   bool
	more    bool // there is one
}

// ascentSteps is how many cells are stepped over before the tree is searched again.
const ascentSteps = 4

func (o *overlay[V]) ascent(v ledger.Version) ascent[V] {
	return ascent[V]{over: o, version: v, layer: o.cells.Iter(), more: o.cells.Len() > 0}
}

func (w *ascent[V]) release() { w.layer.Release() }

// at returns what overlay.over does.
func (w *ascent[V]) at(key *V) (value *V, ok bool) {
	if !w.more {
		return nil, false
	}
	prefix := w.over.prefix(key)
	if !w.begun {
		w.begun = true
		w.seek(prefix, key)
	}
	for step := 1; w.more; step++ {
		switch {
		case w.next.prefix > prefix:
			return nil, false
		case w.next.prefix == prefix:
			order := w.over.compare(w.next.value, key)
			switch {
			case order > 0:
				return nil, false
			case order == 0 && w.next.version <= w.version && w.next.absent:
				return nil, true
			case order == 0 && w.next.version <= w.version:
				return w.next.value, true
			}
		}
		if step%ascentSteps == 0 {
			w.seek(prefix, key)
		} else if w.more = w.layer.Next(); w.more {
			w.next = w.layer.Item()
		}
	}
	return nil, false
}

func (w *ascent[V]) seek(prefix uint64, key *V) {
	if w.more = w.layer.Seek(cell[V]{prefix: prefix, version: w.version, value: key}); w.more {
		w.next = w.layer.Item()
	}
}
