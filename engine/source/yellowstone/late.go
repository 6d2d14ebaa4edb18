package yellowstone

import (
	"slices"

	"ledgerd/engine/ledger"
)

const (
	// keptBlocks is of how many of the newest blocks the write versions are kept, to tell a
	// write that comes late from one that comes again.
	keptBlocks = 32
	// keptLate bounds the accounts of one block of which a late write is kept.
	keptLate = 1024
)

// sealedBlock is what is kept of a block that was sealed.
type sealedBlock struct {
	slot  ledger.Slot
	head  *Head
	wrote writes // without the accounts
	late  writes // that came after the block
}

// takeLate takes a write of a block that is over. A correct validator sends none: all that a block wrote
// comes before the slot is processed. The block cannot be changed any more. So that the write
// is neither lost nor outlives a fork, it becomes one of every block sealed from then on that builds on this one, unless
// that or a block between writes the account. A write of a block that is not kept any more is taken for a duplicate.
func (a *Assembler) takeLate(u *Update, end ending) {
	b := a.sealedBlock(u.Slot, ledger.Some(end.hash))
	if end.partial || b == nil || b.wrote.covers(u) {
		a.Counts.Duplicates++
		return
	}
	a.Counts.Late++
	if len(b.late.accounts) < keptLate {
		b.late.write(u.Write, u.WriteVersion)
	}
}

// covers reports whether an update is no newer than what was written.
func (w *writes) covers(u *Update) bool {
	i, ok := w.place[u.Write.Pubkey]
	return ok && u.WriteVersion <= w.versions[i]
}

// sealedBlock returns the newest block kept of a slot, with the hash if that is known; nil if there is none.
func (a *Assembler) sealedBlock(slot ledger.Slot, hash ledger.Opt[ledger.Hash]) *sealedBlock {
	for _, b := range slices.Backward(a.sealed) {
		if b.slot == slot && (!hash.Known || b.head.Hash == hash.Value) {
			return b
		}
	}
	return nil
}

// parentOf returns the block kept that one builds on. It is nil for a genesis block, which names itself.
func (a *Assembler) parentOf(slot ledger.Slot, head *Head) *sealedBlock {
	if head.ParentSlot >= slot {
		return nil
	}
	return a.sealedBlock(head.ParentSlot, head.ParentHash)
}

// inherit has an assembly about to be sealed write what came late of the blocks that it builds on.
func (a *Assembler) inherit(slot ledger.Slot, s *assembly) {
	newer := []*writes{&s.writes}
	for b := a.parentOf(slot, s.head); b != nil; b = a.parentOf(b.slot, b.head) {
		for i, w := range b.late.accounts {
			if !slices.ContainsFunc(newer, func(n *writes) bool { return n.has(w.Pubkey) }) {
				s.write(w, b.late.versions[i])
			}
		}
		newer = append(newer, &b.wrote)
	}
}

func (w *writes) has(key ledger.Pubkey) bool {
	_, ok := w.place[key]
	return ok
}

// remember keeps a block that is sealed. One that the stream shows again keeps its late writes; what comes in time now is
// newer.
func (a *Assembler) remember(slot ledger.Slot, s *assembly) {
	b := a.sealedBlock(slot, ledger.Some(s.head.Hash))
	if b == nil {
		b = &sealedBlock{slot: slot, head: s.head, late: newWrites()}
		a.sealed = append(a.sealed[max(0, len(a.sealed)+1-keptBlocks):], b)
	}
	b.wrote = writes{place: s.place, versions: s.versions}
	for i, w := range b.late.accounts {
		if at, ok := s.place[w.Pubkey]; ok {
			b.late.accounts[i] = s.accounts[at]
		}
	}
}
