package listen

import (
	"cmp"
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
	told func(slot uint64, first time.Time) // of each end that comes first; nil: nobody is

	mu   sync.Mutex
	ends []*arrival // in order: the newest, at most about keptEnds of them

	// Of the ends that are not kept any more, which nobody is expected to receive late.
	upTo        slotEnd
	lacking     int64 // updates
	subscribers int   // that should have received the next end
}

// keptEnds is how many ends are kept: half an hour of a network. They are counted up each second, while subscribers wait.
const keptEnds = 1 << 12

// arrival is the end of one slot.
type arrival struct {
	slotEnd
	first time.Time
	most  int // updates of the slot that any subscriber received
	got   int // those of all together
	more  int // by how many more subscribers the next end should have been received than this one
}

// find returns where an end is, or belongs.
func (a *arrivals) find(e slotEnd) (at int, found bool) {
	return slices.BinarySearchFunc(a.ends, e, func(x *arrival, e slotEnd) int { return x.compare(e) })
}

// end counts that a subscriber received the end of a slot for the first time, and that it should have received every end since the
// one before, if that is not zero. It returns how much later than the first subscriber; others is false for that one.
func (a *arrivals) end(e, after slotEnd, now time.Time, got, least int) (later time.Duration, others bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.compare(a.upTo) <= 0 {
		return 0, false // so late that it is not counted
	}
	at, others := a.find(e)
	if !others {
		a.ends = slices.Insert(a.ends, at, &arrival{slotEnd: e, first: now})
		if a.told != nil {
			a.told(e.slot, now)
		}
	}
	x := a.ends[at]
	if after != (slotEnd{}) {
		if before, kept := a.find(after); kept {
			a.ends[before].more++
		} else {
			a.subscribers++
		}
		x.more--
	}
	x.most, x.got = max(x.most, least), x.got+got
	return now.Sub(x.first), others
}

// missing returns how many updates subscribers lack that others received, and forgets the oldest ends where there are many.
func (a *arrivals) missing() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	missing, subscribers := a.lacking, a.subscribers
	old := len(a.ends) - keptEnds
	for n, x := range a.ends {
		missing += int64(x.most*subscribers - x.got)
		subscribers += x.more
		if n < old {
			a.upTo, a.lacking, a.subscribers = x.slotEnd, missing, subscribers
		}
	}
	a.ends = slices.Delete(a.ends, 0, max(0, old))
	return missing
}

// arrived returns when the first subscriber received the end of a slot; zero: it has not.
func (a *arrivals) arrived(slot uint64) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range slices.Backward(a.ends) {
		if x.slot == slot {
			return x.first
		}
	}
	return time.Time{}
}
