package yellowstone

import (
	"slices"

	"ledgerd/engine/ledger"
)

// keptLate bounds the writes that came late and are kept for the blocks after; the oldest is dropped.
const keptLate = 1024

// lateWrite is a write of an account that came when its block was sealed, or one that such a write of an earlier
// block left there.
type lateWrite struct {
	block   ledger.BlockID
	write   ledger.AccountWrite
	version uint64
}

// takeLate takes a write of a block that is over. A correct validator sends none: all that a block wrote
// comes before the slot is processed. The block cannot be changed any more. So that the write
// is neither lost nor outlives a fork, it counts as one of every block that builds on its own, unless that writes the
// account itself. Where nobody can tell any more whether it came before, it is taken for a duplicate.
func (a *Assembler) takeLate(u *Update, end ending) {
	if end.dead || end.partial || end.wrote.place == nil || end.wrote.covers(u) {
		a.Counts.Duplicates++
		return
	}
	a.Counts.Late++
	id := ledger.BlockID{Slot: u.Slot, Hash: end.hash}
	a.leave(lateWrite{id, u.Write, u.WriteVersion})
	for _, child := range a.sealedOn(id, u.Write.Pubkey) {
		a.leave(lateWrite{child, u.Write, u.WriteVersion})
	}
}

// leave keeps a write for the blocks that build on one. Of several of an account the newest counts.
func (a *Assembler) leave(l lateWrite) {
	for i := range a.late {
		if o := &a.late[i]; o.block == l.block && o.write.Pubkey == l.write.Pubkey {
			if l.version >= o.version {
				*o = l
			}
			return
		}
	}
	if len(a.late) >= keptLate {
		a.late = slices.Delete(a.late, 0, 1)
	}
	a.late = append(a.late, l)
}

// sealedOn returns the blocks sealed lately that build on one, directly or on each other, up to those that wrote an
// account.
func (a *Assembler) sealedOn(id ledger.BlockID, key ledger.Pubkey) (on []ledger.BlockID) {
	slots := slices.Clone(a.versioned[:])
	slices.Sort(slots) // a parent before its children
	at := map[ledger.BlockID]bool{id: true}
	for _, slot := range slices.Compact(slots) {
		end, ok := a.over(slot)
		if _, wrote := end.wrote.place[key]; !ok || !at[end.parent] || wrote {
			continue
		}
		child := ledger.BlockID{Slot: slot, Hash: end.hash}
		at[child], on = true, append(on, child)
	}
	return on
}

// parentOf names the block that an assembly with its head builds on. Where the hash is not told, the one that this
// stream sealed at that slot is meant.
func (a *Assembler) parentOf(s *assembly) ledger.BlockID {
	id := ledger.BlockID{Slot: s.head.ParentSlot, Hash: s.head.ParentHash.Value}
	if end, ok := a.over(id.Slot); ok && !s.head.ParentHash.Known {
		id.Hash = end.hash
	}
	return id
}

// catchUp has an assembly about to be sealed write what came late of the block that it builds on.
func (a *Assembler) catchUp(slot ledger.Slot, s *assembly) {
	own, parent := ledger.BlockID{Slot: slot, Hash: s.head.Hash}, a.parentOf(s)
	for i := range a.late {
		l := &a.late[i]
		at, wrote := s.place[l.write.Pubkey]
		switch {
		case l.block == own && wrote: // it came again, and now in time
			l.write, l.version = s.accounts[at], s.versions[at]
		case l.block == parent && !wrote:
			s.write(&Update{Write: l.write, WriteVersion: l.version})
		}
	}
}

// forgetLate drops what was kept for blocks on those below a slot.
func (a *Assembler) forgetLate(below ledger.Slot) {
	a.late = slices.DeleteFunc(a.late, func(l lateWrite) bool { return l.block.Slot+keptSlots < below })
}
