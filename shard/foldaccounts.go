package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// fold moves accounts of versions up to v into the base, at most budget of them, and reports
// whether there is more to do. It calls settled with each that is now there.
func (t *accounts) fold(v ledger.Version, budget int, settled func(now *ledger.Account)) (more bool) {
	n := t.overlay.upTo(v)
	// Touch all records first: the processor then waits for many lines of memory at once, which
	// takes a third off the fold.
	for i := range min(n, budget) {
		if w := t.overlay.written.at(t.overlay.written.nth(i)); w.base != 0 {
			t.touched += t.base.Prefetch(w.base)
		}
	}
	for end := t.overlay.written.nth(n); n > 0 && budget > 0; n, budget = n-1, budget-1 {
		t.foldOldest(end, settled)
	}
	return n > 0
}

// foldOldest moves the oldest value into the base, unless a newer one of its key will be, which
// is one before end.
func (t *accounts) foldOldest(end position, settled func(now *ledger.Account)) {
	p := t.overlay.written.oldest
	w := t.overlay.written.at(p)
	now := w.base
	if w.newer == 0 || w.newer-p >= end-p {
		now = t.settle(w, settled)
	}
	var newer *written
	if w.newer == 0 {
		t.overlay.removeHead(p, &w.key)
	} else if now != w.base || w.moved {
		newer = t.overlay.written.at(w.newer)
		newer.base, newer.moved = now, true
	}
	if w.byProgram {
		t.unlistProgram(w, end)
	}
	if w.byWallet {
		t.unlistWallet(w, end)
	}
	t.overlay.drop(w)
}

// settle makes what the base holds of a key what w says, and returns the record, 0 for none.
func (t *accounts) settle(w *written, settled func(now *ledger.Account)) (now arena.Ref) {
	before := w.base
	if before == 0 {
		before = t.base.Get(&w.key)
	}
	if w.absent {
		if before != 0 {
			t.base.Drop(before)
		}
	} else {
		t.overlay.unpack(w, &t.folding)
		now = t.base.Put(before, &t.folding)
		settled(&t.folding)
	}
	switch {
	case now == 0 && w.newer != 0:
		t.overlayOnly.Set(w.key)
	case t.overlayOnly.Len() > 0 && (before == 0 || now == 0):
		t.overlayOnly.Delete(w.key)
	default:
		return now
	}
	t.ofOverlayOnly.writes++
	return now
}

// forget removes an account from the base that is folded.
func (t *accounts) forget(key *ledger.Pubkey) {
	t.base.Remove(key)
	p := t.overlay.find(key).head
	if p == 0 {
		return
	}
	// It was opened again: what was written first must not name the record.
	w := t.overlay.written.at(p)
	for t.overlay.written.holds(w.older) {
		w = t.overlay.written.at(w.older)
	}
	w.base, w.moved = 0, true
	t.ofOverlayOnly.writes++
	t.overlayOnly.Set(*key)
}

// unlistProgram removes what the overlay lists of a value that leaves it, unless a newer version of
// the account still supports it. The base lists its own.
func (t *accounts) unlistProgram(w *written, end position) {
	supports := func(newer *written) bool {
		program, ok := newer.program()
		return ok && *program == w.owner
	}
	if !t.supported(w, end, supports) {
		t.programs.remove(w.owner, w.key)
	}
}

func (t *accounts) unlistWallet(w *written, end position) {
	was, _ := t.overlay.wallet(w)
	supports := func(newer *written) bool {
		wallet, ok := t.overlay.wallet(newer)
		return ok && *wallet == *was
	}
	if !t.supported(w, end, supports) {
		t.holders.remove(*was, w.key)
	}
}

// supported reports whether there is a reason to list the oldest value in one that anybody may
// still read: in those that stay, or the one before end that the base will have. An account that
// moves on in every version would else have all of them looked at for each.
func (t *accounts) supported(w *written, end position, reason func(newer *written) bool) bool {
	oldest := t.overlay.written.oldest
	for p := t.overlay.find(&w.key).head; p != 0 && p != oldest; {
		newer := t.overlay.written.at(p)
		if reason(newer) {
			return true
		}
		if p-oldest < end-oldest {
			return false
		}
		p = newer.older
	}
	return false
}
