package yellowstone

import "ledgerd/engine/ledger"

// keptEndings is of how many slots it is remembered what was told of them: a quarter of an hour of a
// network. A stream that names others all the time must not have everything remembered.
const keptEndings = 4 * keptSlots

// recent holds what was told of the [keptEndings] slots that were told of last. A new one makes it forget
// the one that is longest in it.
type recent[V any] struct {
	of   map[ledger.Slot]entry[V]
	ring [keptEndings]seat // by number modulo that
	next uint64            // the number of the next; 0 is nobody's
}

type entry[V any] struct {
	number uint64
	value  V
}

// seat is what once was put into a place of the ring; it may have been taken out since.
type seat struct {
	slot   ledger.Slot
	number uint64
}

func newRecent[V any]() recent[V] { return recent[V]{of: make(map[ledger.Slot]entry[V]), next: 1} }

func (r *recent[V]) len() int { return len(r.of) }

func (r *recent[V]) get(slot ledger.Slot) (V, bool) {
	t, ok := r.of[slot]
	return t.value, ok
}

// put sets what is told of a slot. One that is there keeps its age.
func (r *recent[V]) put(slot ledger.Slot, v V) {
	if t, ok := r.of[slot]; ok {
		t.value = v
		r.of[slot] = t
		return
	}
	oldest := &r.ring[r.next%keptEndings]
	if t, ok := r.of[oldest.slot]; ok && t.number == oldest.number {
		delete(r.of, oldest.slot)
	}
	*oldest = seat{slot, r.next}
	r.of[slot] = entry[V]{r.next, v}
	r.next++
}

func (r *recent[V]) delete(slot ledger.Slot) { delete(r.of, slot) }

func (r *recent[V]) clear() { clear(r.of) }
