package yellowstone

import (
	"cmp"
	"iter"
	"slices"

	"ledgerd/engine/ledger"
)

// keptTries bounds the tries of a slot that are open, and those that are over and remembered.
const keptTries = 8

// slot is what this stream showed of a slot.
type slot struct {
	open   []*assembly // by their banks
	over   []*assembly // in the order in which they ended
	begun  uint64      // value of taken at the first status by which the slot began; 0: none said so
	frozen uint64      // likewise, by which it was processed
}

// tries visits the tries that are open.
func (a *Assembler) tries() iter.Seq[*assembly] {
	return func(visit func(*assembly) bool) {
		for _, slot := range a.slots {
			for _, s := range slot.open {
				if !visit(s) {
					return
				}
			}
		}
	}
}

// isTry reports whether an update of a bank is about the try of a bank; 0 is any.
func isTry(try, bank uint64) bool { return try == bank || try == 0 || bank == 0 }

// try returns the try that an update is about: one that is open, else the newest that is over, nil if none is known.
func (a *Assembler) try(u *Update) *assembly {
	slot := a.slots[u.Slot]
	for _, s := range slices.Backward(slot.open) {
		if isTry(s.bank, u.Bank) {
			s.bank = max(s.bank, u.Bank)
			return s
		}
	}
	return newest(slot.over, func(s *assembly) bool { return isTry(s.bank, u.Bank) })
}

// claimedTry is try for a status by which a slot is confirmed or final. One that does not name its bank is of a sealed block, while
// another try of the slot is not processed, or dead, or has no head where banks are not numbered: the statuses of its bank came twice.
func (a *Assembler) claimedTry(u *Update) *assembly {
	s := a.try(u)
	if u.Bank == 0 && (s == nil || s.isOver() || !s.processed || s.bank == 0 && s.head == nil) {
		return cmp.Or(newest(a.slots[u.Slot].over, func(s *assembly) bool { return s.state == sealed }), s)
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

// at returns the try that an update is about, which is begun if none is known.
func (a *Assembler) at(u *Update) *assembly {
	if s := a.try(u); s != nil {
		return s
	}
	return a.add(u)
}

// add begins the try that an update is about.
func (a *Assembler) add(u *Update) *assembly {
	if open := a.slots[u.Slot].open; len(open) == keptTries {
		a.drop(open[0])
		a.Counts.Dropped++
	}
	s, slot := newAssembly(u.Slot, u.Bank, a.taken), a.slots[u.Slot]
	slot.open = append(slot.open, s)
	slices.SortStableFunc(slot.open, func(x, y *assembly) int { return cmp.Compare(x.bank, y.bank) })
	a.slots[u.Slot] = slot
	a.grow(s, assemblyBytes)
	return s
}

// grow adds to the size of an open try.
func (a *Assembler) grow(s *assembly, bytes int) {
	s.bytes += bytes
	a.bytes += bytes
}

// drop removes an open try.
func (a *Assembler) drop(s *assembly) {
	a.bytes -= s.bytes
	slot := a.slots[s.slot]
	slot.open = slices.DeleteFunc(slot.open, func(o *assembly) bool { return o == s })
	a.slots[s.slot] = slot
}

// end notes what became of a try that is not open any more, in the place of what was noted of it.
func (a *Assembler) end(s *assembly, how state) {
	s.state = how
	slot := a.slots[s.slot]
	slot.over = slices.DeleteFunc(slot.over, func(o *assembly) bool { return isTry(o.bank, s.bank) })
	slot.over = append(slot.over[max(0, len(slot.over)+1-keptTries):], s)
	a.slots[s.slot] = slot
}

// forget drops the slots that are more than keptSlots below another.
func (a *Assembler) forget(below ledger.Slot) {
	for at, slot := range a.slots {
		if at+keptSlots < below {
			for _, s := range slot.open {
				a.lose(s)
				a.bytes -= s.bytes
				a.Counts.Dropped++
			}
			delete(a.slots, at)
		}
	}
}
