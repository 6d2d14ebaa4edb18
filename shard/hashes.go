package shard

// hashes is a hash table with linear probing, of things that are kept elsewhere: an entry has the
// hash of a key in its upper half and in its lower the number of what has the key, which is never
// 0. 0 is a free place. Who looks for a key begins at the place of its hash and compares.
type hashes struct {
	table []uint64
	used  int
}

// smallestTable is how many places a table has at least.
const smallestTable = 64

// first returns the place to begin at; the next one after a place is (at+1)&mask.
func (h *hashes) first(hash uint32) (at, mask int) {
	mask = len(h.table) - 1
	return int(hash) & mask, mask
}

// grow makes sure that one more entry can be added, which moves the others if it must.
func (h *hashes) grow() {
	if 4*(h.used+1) > 3*len(h.table) {
		h.resize(max(smallestTable, 2*len(h.table)))
	}
}

func (h *hashes) resize(places int) {
	old := h.table
	h.table = make([]uint64, places)
	for _, e := range old {
		if e == 0 {
			continue
		}
		at, mask := h.first(uint32(e >> 32))
		for h.table[at] != 0 {
			at = (at + 1) & mask
		}
		h.table[at] = e
	}
}

// add puts an entry at a place, which is free and the one where a search for it ends.
func (h *hashes) add(at int, hash, number uint32) {
	h.table[at] = uint64(hash)<<32 | uint64(number)
	h.used++
}

// replace gives an entry another number. It is at the place where it was found, unless others were
// added since and moved it.
func (h *hashes) replace(at int, hash, number, by uint32) {
	was := uint64(hash)<<32 | uint64(number)
	if h.table[at] != was {
		mask := 0
		for at, mask = h.first(hash); h.table[at] != was; at = (at + 1) & mask {
		}
	}
	h.table[at] = uint64(hash)<<32 | uint64(by)
}

// remove frees a place. Others may move.
func (h *hashes) remove(at int) {
	// Close the gap, so that probing needs no marks of what was here: move up each entry behind
	// it that would not be found past a free place.
	mask := len(h.table) - 1
	for next := (at + 1) & mask; h.table[next] != 0; next = (next + 1) & mask {
		home := int(h.table[next]>>32) & mask
		if (next-home)&mask >= (next-at)&mask {
			h.table[at] = h.table[next]
			at = next
		}
	}
	h.table[at] = 0
	if h.used--; len(h.table) > smallestTable && 8*h.used < len(h.table) {
		h.resize(len(h.table) / 2)
	}
}
