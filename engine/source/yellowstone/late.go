package yellowstone

import (
	"context"
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
	a.keepLate(s, u.Write, u.WriteVersion)
}

// keepLate keeps a late write of a block, if it has not too many.
func (a *Assembler) keepLate(s *assembly, w ledger.AccountWrite, version uint64) {
	if _, isKept := s.late.place[w.Pubkey]; !isKept && len(s.late.accounts) == keptLate {
		a.Counts.Lost++
		return
	}
	s.late.write(w, version)
}

// lose counts the writes of an open try that is dropped, if they may have been late: its slot has a block, and the status of the block's bank may have
// come twice. Had another bank written them, its head would have come.
func (a *Assembler) lose(s *assembly) {
	if s.bank == 0 && s.head == nil && newest(a.slots[s.slot].over, func(o *assembly) bool { return o.state == sealed }) != nil {
		a.Counts.Late += uint64(len(s.accounts))
		a.Counts.Lost += uint64(len(s.accounts))
	}
}

// covers reports whether a write of an account has a version or a newer one.
func (w *writes) covers(key ledger.Pubkey, version uint64) bool {
	i, ok := w.place[key]
	return ok && version <= w.versions[i]
}

// inherit adds the late writes of the blocks that an assembly builds on, before it is sealed. What a block inherited hides only what was
// known then: a newer late write of the same account may have come since.
func (a *Assembler) inherit(s *assembly) {
	own, inherited := []*writes{&s.writes, &s.inherited}, []*writes(nil)
	for b := newest(a.sealed, s.buildsOn); b != nil; b = newest(a.sealed, b.buildsOn) {
		for i, w := range b.late.accounts {
			isWritten := func(n *writes) bool { return n.covers(w.Pubkey, 0) }
			isKnown := func(n *writes) bool { return n.covers(w.Pubkey, b.late.versions[i]) }
			if !slices.ContainsFunc(own, isWritten) && !slices.ContainsFunc(inherited, isKnown) {
				s.inherited.write(w, b.late.versions[i])
			}
		}
		own, inherited = append(own, &b.writes, &b.late), append(inherited, &b.inherited)
	}
}

// keep adds a block to those that are sealed.
func (a *Assembler) keep(s *assembly) {
	if a.sealed = append(a.sealed, s); len(a.sealed) > keptBlocks {
		a.sealed[0].writes, a.sealed[0].late, a.sealed[0].inherited = writes{}, writes{}, writes{}
		a.sealed = slices.Delete(a.sealed, 0, 1)
	}
}

// shownBefore returns the place of a block in those that are sealed, -1 if it is not one of them.
func (a *Assembler) shownBefore(slot ledger.Slot, hash ledger.Hash) int {
	return slices.IndexFunc(a.sealed, func(b *assembly) bool { return b.slot == slot && b.head.Hash == hash })
}

// Fill emits what a Filler shows of the blocks that the stream did not. A block tells the late writes of those that it builds on before its own, which
// do not tell all of an account.
func (a *Assembler) Fill(ctx context.Context, e ledger.Event) error {
	if b, isBlock := e.(*ledger.Block); isBlock {
		filled := *b
		filled.Accounts = slices.Concat(a.fill(b).inherited.accounts, b.Accounts)
		e = &filled
	}
	return a.emit(ctx, e)
}

// fill returns the block of a Filler as it is kept beside those of the stream.
func (a *Assembler) fill(b *ledger.Block) *assembly {
	if again := a.shownBefore(b.Slot, b.Blockhash); again >= 0 {
		return a.sealed[again]
	}
	s := newAssembly(b.Slot, 0, a.taken)
	s.head = &Head{Hash: b.Blockhash, ParentSlot: b.ParentSlot, ParentHash: b.PreviousBlockhash}
	a.inherit(s)
	for i := range b.Accounts {
		s.write(b.Accounts[i], 0)
	}
	s.accounts = nil
	a.keep(s)
	return s
}

// remember keeps a block that is sealed, with what it inherits. If an earlier stream showed it, what is emitted now changes nothing, unless the
// block then waited for its parent in vain. So it tells what it inherited the first time, and nothing more, and keeps its late writes, with the newer
// values of those that come in time now. What the earlier stream did not show of it is late too, the last writes first: these are the likeliest to
// be missing.
func (a *Assembler) remember(s *assembly) {
	again := a.shownBefore(s.slot, s.head.Hash)
	if again < 0 {
		a.inherit(s)
		a.keep(s)
		return
	}
	before := a.sealed[again]
	s.late, before.late, a.sealed[again] = before.late, newWrites(), s
	for i, w := range before.inherited.accounts {
		if !s.covers(w.Pubkey, 0) {
			s.inherited.write(w, before.inherited.versions[i])
		}
	}
	compares := a.Filtered || slices.ContainsFunc(s.accounts, func(w ledger.AccountWrite) bool { // else another validator numbers writes otherwise
		at, ok := before.place[w.Pubkey]
		return ok && before.versions[at] == s.versions[s.place[w.Pubkey]]
	})
	for i, w := range slices.Backward(s.accounts) {
		version := s.versions[i]
		if !compares {
			version = 0
		}
		if at, isLate := s.late.place[w.Pubkey]; isLate {
			s.late.accounts[at], s.late.versions[at] = w, max(s.versions[i], s.late.versions[at])
		} else if !before.covers(w.Pubkey, version) {
			a.keepLate(s, w, s.versions[i])
		}
	}
}
