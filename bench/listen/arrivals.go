package listen

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// slotEnd is what a slot_end frame names. A slot that comes again after a fork has other numbers.
type slotEnd struct{ slot, seq uint64 }

func (a slotEnd) compare(b slotEnd) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.slot, b.slot))
}

// arrivals is when the subscribers of a pool received the ends of slots, and how many updates of each.
type arrivals struct {
	mu   sync.Mutex
	ends map[slotEnd]*arrival
}

// arrival is the end of one slot.
type arrival struct {
	first time.Time
	most  int // updates of the slot that any subscriber received
	got   int // those of all together
	more  int // by how many more subscribers the next end should have been received than this one
}

// end counts that a subscriber received the end of a slot for the first time, and that it should have received every end since the
// one before, if that is not zero. It returns how much later than the first subscriber; others is false for that one.
func (a *arrivals) end(e, after slotEnd, now time.Time, got, least int) (later time.Duration, others bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x, others := a.ends[e]
	if !others {
		x = &arrival{first: now}
		a.ends[e] = x
	}
	if after != (slotEnd{}) {
		a.ends[after].more++
		x.more--
	}
	x.most, x.got = max(x.most, least), x.got+got
	return now.Sub(x.first), others
}

// missing returns how many updates subscribers lack that others received.
func (a *arrivals) missing() (missing int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	subscribers := 0 // that should have received an end
	for _, e := range slices.SortedFunc(maps.Keys(a.ends), slotEnd.compare) {
		x := a.ends[e]
		missing += int64(x.most*subscribers - x.got)
		subscribers += x.more
	}
	return missing
}
