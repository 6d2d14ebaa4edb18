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

// takeLate takes a write of a block that is over. A correct validator sends none: all writes of a block come before the
// slot is processed. The emitted block cannot be changed. So the write becomes one of every block sealed from then on that
// builds on this one, unless that block or one between writes the account: it is neither lost nor outlives a fork. A write of a
// block that is not kept any more counts as a duplicate.
func (a *Assembler) takeLate(u *Update, s *assembly) {
	if s.place == nil || s.covers(u.Write.Pubkey, u.WriteVersion) {
		a.Counts.Duplicates++
		return
	}
	a.Counts.Late++
	if s.late.place == nil {
		s.late = newWrites()
	}
	if len(s.late.accounts) < keptLate {
		s.late.write(u.Write, u.WriteVersion)
	}
}

// covers reports whether a write of an account has a version or a newer one.
func (w *writes) covers(key ledger.Pubkey, version uint64) bool {
	i, ok := w.place[key]
	return ok && version <= w.versions[i]
}

// parentOf returns the block kept that one builds on. It is nil for a genesis block, which names itself.
func (a *Assembler) parentOf(s *assembly) *assembly {
	return newest(a.sealed, func(p *assembly) bool {
		return p.slot == s.head.ParentSlot && p.slot < s.slot && (!s.head.ParentHash.Known || s.head.ParentHash.Value == p.head.Hash)
	})
}

// inherit adds the late writes of the blocks that an assembly builds on, before it is sealed.
func (a *Assembler) inherit(s *assembly) {
	newer := []*writes{&s.writes}
	for b := a.parentOf(s); b != nil; b = a.parentOf(b) {
		for i, w := range b.late.accounts {
			if !slices.ContainsFunc(newer, func(n *writes) bool { return n.covers(w.Pubkey, 0) }) {
				s.write(w, b.late.versions[i])
			}
		}
		newer = append(newer, &b.writes)
	}
}

// remember keeps a block that is sealed. If another stream shows it again, it keeps its late writes, with the newer values
// of those that come in time now.
func (a *Assembler) remember(s *assembly) {
	again := slices.IndexFunc(a.sealed, func(b *assembly) bool { return b.slot == s.slot && b.head.Hash == s.head.Hash })
	if again < 0 {
		if a.sealed = append(a.sealed, s); len(a.sealed) > keptBlocks {
			a.sealed[0].writes, a.sealed[0].late = writes{}, writes{}
			a.sealed = slices.Delete(a.sealed, 0, 1)
		}
		return
	}
	s.late, a.sealed[again] = a.sealed[again].late, s
	for i, w := range s.late.accounts {
		if at, ok := s.place[w.Pubkey]; ok {
			s.late.accounts[i] = s.accounts[at]
		}
	}
}
