package listen

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"ledgerd/bench/latency"
)

// slotEnd is what a slot_end frame names. A slot that comes again after a fork has other numbers.
type slotEnd struct{ slot, seq uint64 }

func (a slotEnd) compare(b slotEnd) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.slot, b.slot))
}

// arrivals is when the subscribers of a pool received the ends of slots first.
type arrivals struct {
	told func(slot uint64, first time.Time) // of each end that comes first; nil: nobody is

	mu   sync.Mutex
	ends []arrival          // the newest, as they came
	skew *latency.Histogram // how much later than the first subscriber the others received them
}

// arrival is the end of one slot.
type arrival struct {
	slotEnd
	first time.Time
}

// keptEnds is how many ends are kept: half an hour of a network.
const keptEnds = 1 << 12

// end notes that a subscriber received the end of a slot.
func (a *arrivals) end(e slotEnd, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range slices.Backward(a.ends) {
		if x.slotEnd == e {
			a.skew.Record(now.Sub(x.first))
			return
		}
	}
	a.ends = append(a.ends[max(0, len(a.ends)+1-keptEnds):], arrival{e, now})
	if a.told != nil {
		a.told(e.slot, now)
	}
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

// takeSkew returns how much later than the first subscriber the others received the ends of slots, since the last call.
func (a *arrivals) takeSkew() *latency.Histogram {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.skew
	a.skew = latency.New()
	return taken
}
