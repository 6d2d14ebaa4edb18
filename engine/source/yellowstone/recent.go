package yellowstone

import "ledgerd/engine/ledger"

// keptEndings is the number of slots that are remembered: a quarter of an hour of a network. A stream that names other
// slots all the time does not make the memory grow.
const keptEndings = 4 * keptSlots

// recent holds values of the slots that were put last: at least keptEndings, at most twice as many. When newer is full it
// becomes older, and the values in older are dropped.
type recent[V any] struct{ newer, older map[ledger.Slot]V }

func (r *recent[V]) get(slot ledger.Slot) (V, bool) {
	if v, ok := r.newer[slot]; ok {
		return v, true
	}
	v, ok := r.older[slot]
	return v, ok
}

func (r *recent[V]) put(slot ledger.Slot, v V) {
	r.delete(slot)
	if r.newer == nil || len(r.newer) >= keptEndings {
		r.newer, r.older = make(map[ledger.Slot]V), r.newer
	}
	r.newer[slot] = v
}

func (r *recent[V]) contains(is func(ledger.Slot, V) bool) bool {
	for _, all := range []map[ledger.Slot]V{r.newer, r.older} {
		for slot, v := range all {
			if is(slot, v) {
				return true
			}
		}
	}
	return false
}

func (r *recent[V]) delete(slot ledger.Slot) {
	delete(r.newer, slot)
	delete(r.older, slot)
}

func (r *recent[V]) clear() { r.newer, r.older = nil, nil }
