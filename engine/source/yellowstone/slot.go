package yellowstone

import (
	"cmp"
	"iter"
	"slices"

	"ledgerd/engine/ledger"
)

// keptNamed is the number of slots that are remembered: a quarter of an hour of a network. A stream that names other
// slots all the time does not make the memory grow.
const keptNamed = 4 * keptSlots

// keptTries bounds the tries of a slot that are over and remembered, and those that are open.
const keptTries = 8

// slot is what this stream showed of a slot.
type slot struct {
	open   []*assembly // by their banks
	over   []*assembly // in the order in which they ended
	frozen uint64      // value of taken at the first status by which the slot was processed; 0: none said so, or the stream is not live
}

// recentSlots holds the slots that were named last: at least keptNamed, at most twice as many. When newer is full it becomes
// older, and the slots in older are dropped.
type recentSlots struct{ newer, older map[ledger.Slot]*slot }

// get returns a slot, which is empty and not held if it was not named.
func (r *recentSlots) get(at ledger.Slot) *slot {
	if s := r.newer[at]; s != nil {
		return s
	}
	if s := r.older[at]; s != nil {
		return s
	}
	return new(slot)
}

// name returns a slot, which is held from now on, and the slots that are dropped for it.
func (r *recentSlots) name(at ledger.Slot) (s *slot, dropped map[ledger.Slot]*slot) {
	if s = r.newer[at]; s != nil {
		return s, nil
	}
	s = r.get(at)
	delete(r.older, at)
	if r.newer == nil || len(r.newer) >= keptNamed {
		r.newer, r.older, dropped = make(map[ledger.Slot]*slot), r.newer, r.older
	}
	r.newer[at] = s
	return s, dropped
}

// all visits the slots, which may be deleted meanwhile.
func (r *recentSlots) all() iter.Seq2[ledger.Slot, *slot] {
	return func(visit func(ledger.Slot, *slot) bool) {
		for _, slots := range []map[ledger.Slot]*slot{r.newer, r.older} {
			for at, s := range slots {
				if !visit(at, s) {
					return
				}
			}
		}
	}
}

// tries visits the tries that are open.
func (r *recentSlots) tries() iter.Seq[*assembly] {
	return func(visit func(*assembly) bool) {
		for _, s := range r.all() {
			for _, try := range s.open {
				if !visit(try) {
					return
				}
			}
		}
	}
}

// slot returns a slot that is held from now on.
func (a *Assembler) slot(at ledger.Slot) *slot {
	s, dropped := a.slots.name(at)
	for _, old := range dropped {
		a.dropAll(old)
	}
	return s
}

// forget drops the slots that are more than keptSlots below another.
func (a *Assembler) forget(below ledger.Slot) {
	for at, s := range a.slots.all() {
		if at+keptSlots < below {
			a.dropAll(s)
			delete(a.slots.newer, at)
			delete(a.slots.older, at)
		}
	}
}

// dropAll drops the open tries of a slot that is held no more.
func (a *Assembler) dropAll(s *slot) {
	for _, try := range s.open {
		a.bytes -= try.bytes
		a.Counts.Dropped++
	}
}

// isTry reports whether an update of a bank is about the try of a bank; 0 is any.
func isTry(try, bank uint64) bool { return try == bank || try == 0 || bank == 0 }

// try returns the try that an update is about: one that is open, else the newest that is over, nil if none is known.
func (a *Assembler) try(u *Update) *assembly {
	slot := a.slots.get(u.Slot)
	for _, s := range slices.Backward(slot.open) {
		if isTry(s.bank, u.Bank) {
			s.bank = max(s.bank, u.Bank)
			return s
		}
	}
	return newest(slot.over, func(s *assembly) bool { return isTry(s.bank, u.Bank) })
}

// claimedTry is try for a status by which a slot is confirmed or final. One that does not name its bank is of a sealed block, while
// another try of the slot is not processed, or dead.
func (a *Assembler) claimedTry(u *Update) *assembly {
	s := a.try(u)
	if u.Bank == 0 && (s == nil || s.isOver() || !s.processed) {
		return cmp.Or(newest(a.slots.get(u.Slot).over, func(s *assembly) bool { return s.state == sealed }), s)
	}
	return s
}

// newest returns the last of some tries for which is returns true.
func newest(tries []*assembly, is func(*assembly) bool) *assembly {
	for _, s := range slices.Backward(tries) {
		if is(s) {
			return s
		}
	}
	return nil
}

// at returns the try that an update is about, which is begun if none is known. If it is open, bytes are added to its size.
func (a *Assembler) at(u *Update, bytes int) (*assembly, error) {
	s := a.try(u)
	switch {
	case s == nil:
		s = newAssembly(u.Slot, u.Bank, a.taken)
		slot := a.slot(u.Slot)
		if slot.open = append(slot.open, s); len(slot.open) > keptTries {
			return nil, errTooMuch
		}
		slices.SortStableFunc(slot.open, func(x, y *assembly) int { return cmp.Compare(x.bank, y.bank) })
		bytes += assemblyBytes
	case s.isOver():
		return s, nil
	}
	s.bytes += bytes
	if a.bytes += bytes; a.bytes > maxBytes {
		return nil, errTooMuch
	}
	return s, nil
}

// drop removes an open try.
func (a *Assembler) drop(s *assembly) {
	a.bytes -= s.bytes
	slot := a.slots.get(s.slot)
	slot.open = slices.DeleteFunc(slot.open, func(o *assembly) bool { return o == s })
}

// end notes what became of a try that is not open any more, in the place of what was noted of it.
func (a *Assembler) end(s *assembly, how state) {
	s.state = how
	slot := a.slot(s.slot)
	slot.over = slices.DeleteFunc(slot.over, func(o *assembly) bool { return isTry(o.bank, s.bank) })
	slot.over = append(slot.over[max(0, len(slot.over)+1-keptTries):], s)
}
