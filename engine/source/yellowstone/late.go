package yellowstone

import (
	"slices"

	"ledgerd/engine/ledger"
)

const (
	// keptBlocks is the number of sealed blocks that are kept with their write versions, which tell a
	// write that comes late from one that comes again.
	keptBlocks = 32
	// keptLate bounds the late writes that are kept of one block.
	keptLate = 1024
)

// sealedBlock is what is kept of a block that was sealed.
type sealedBlock struct {
	slot  ledger.Slot
	head  *Head
	wrote writes // without the accounts
	late  writes // that came after the block
}

// takeLate takes a write of a block that is over. A correct validator sends none: all writes of a block come before the
// slot is processed. The emitted block cannot be changed. So the write becomes one of every block sealed from then on that
// builds on this one, unless that block or one between writes the account: it is neither lost nor outlives a fork. A write of a
// block that is not kept any more counts as a duplicate.
func (a *Assembler) takeLate(u *Update, end *assembly) {
	var b *sealedBlock
	if end.head != nil {
		b = a.sealedBlock(u.Slot, ledger.Some(end.head.Hash))
	}
	if b == nil || b.wrote.covers(u.Write.Pubkey, u.WriteVersion) {
		a.Counts.Duplicates++
		return
	}
	a.Counts.Late++
	if len(b.late.accounts) < keptLate {
		b.late.write(u.Write, u.WriteVersion)
	}
}

// covers reports whether a write of an account has a version or a newer one.
func (w *writes) covers(key ledger.Pubkey, version uint64) bool {
	i, ok := w.place[key]
	return ok && version <= w.versions[i]
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

// inherit adds the late writes of the blocks that an assembly builds on, before it is sealed.
func (a *Assembler) inherit(s *assembly) {
	newer := []*writes{&s.writes}
	for b := a.parentOf(s.slot, s.head); b != nil; b = a.parentOf(b.slot, b.head) {
		for i, w := range b.late.accounts {
			if !slices.ContainsFunc(newer, func(n *writes) bool { return n.covers(w.Pubkey, 0) }) {
				s.write(w, b.late.versions[i])
			}
		}
		newer = append(newer, &b.wrote)
	}
}

// remember keeps a block that is sealed. If another stream shows it again, it keeps its late writes, with the newer values
// of those that come in time now.
func (a *Assembler) remember(s *assembly) {
	b := a.sealedBlock(s.slot, ledger.Some(s.head.Hash))
	if b == nil {
		b = &sealedBlock{slot: s.slot, head: s.head, late: newWrites()}
		a.sealed = append(a.sealed[max(0, len(a.sealed)+1-keptBlocks):], b)
	}
	b.wrote = writes{place: s.place, versions: s.versions}
	for i, w := range b.late.accounts {
		if at, ok := s.place[w.Pubkey]; ok {
			b.late.accounts[i] = s.accounts[at]
		}
	}
}
