package listen

import (
	"slices"
	"sync"
	"time"
)

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
}

// end counts that a subscriber received the end of a slot for the first time. It returns how much later than the first
// subscriber; others is false for that one.
func (a *arrivals) end(e slotEnd, now time.Time, got, least int) (later time.Duration, others bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x, others := a.ends[e]
	if !others {
		x = &arrival{first: now}
		a.ends[e] = x
	}
	x.most, x.got = max(x.most, least), x.got+got
	return now.Sub(x.first), others
}

// missing returns how many updates subscribers lack that others received, in the spans of slots that are theirs.
func (a *arrivals) missing(spans []span) (missing int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ends := make([]slotEnd, 0, len(a.ends))
	for e := range a.ends {
		ends = append(ends, e)
	}
	slices.SortFunc(ends, slotEnd.compare)
	more := make([]int, len(ends)+1) // how many more subscribers should have received an end than the one before
	for _, s := range spans {
		after, _ := slices.BinarySearchFunc(ends, s.after, slotEnd.compare)
		to, _ := slices.BinarySearchFunc(ends, s.to, slotEnd.compare)
		more[after+1]++
		more[to+1]--
	}
	subscribers := 0
	for i, e := range ends {
		subscribers += more[i]
		missing += int64(a.ends[e].most*subscribers - a.ends[e].got)
	}
	return missing
}
