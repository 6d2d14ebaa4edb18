package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// fold moves values of versions up to v into the base, at most budget of them, and reports
// whether there are more. It calls onFolded with each account that it put into the base.
func (t *accounts) fold(v ledger.Version, budget int, onFolded func(now *ledger.Account)) (more bool) {
	n := t.overlay.upTo(v)
	// Prefetch all records: the processor then loads many cache lines in parallel, which
	// makes a fold a third faster.
	for i := range min(n, budget) {
		if w := t.overlay.written.at(t.overlay.written.nth(i)); w.base != 0 {
			t.prefetchSink += t.base.Prefetch(w.base)
		}
	}
	for end := t.overlay.written.nth(n); n > 0 && budget > 0; n, budget = n-1, budget-1 {
		t.foldOldest(end, onFolded)
	}
	return n > 0
}

// foldOldest removes the oldest value from the overlay. It moves it into the base unless this fold, which ends
// before position end, also has a newer value of the key.
func (t *accounts) foldOldest(end position, onFolded func(now *ledger.Account)) {
	p := t.overlay.written.oldest
	w := t.overlay.written.at(p)
	now := w.base
	if w.newer == 0 || w.newer-p >= end-p {
		now = t.foldValue(w, onFolded)
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

// foldValue moves a value into the base and returns its record, 0 if w is absent.
func (t *accounts) foldValue(w *written, onFolded func(now *ledger.Account)) (now arena.Ref) {
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
		onFolded(&t.folding)
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

// forget removes a tombstone from the base.
func (t *accounts) forget(key *ledger.Pubkey) {
	t.base.Drop(t.base.Get(key))
	p := t.overlay.find(key).head
	if p == 0 {
		return
	}
	// The account was opened again: its oldest value in the overlay must not refer to the freed record.
	w := t.overlay.written.at(p)
	for t.overlay.written.holds(w.older) {
		w = t.overlay.written.at(w.older)
	}
	w.base, w.moved = 0, true
	t.ofOverlayOnly.writes++
	t.overlayOnly.Set(*key)
}

// unlistProgram removes the overlay's index entry of a value that leaves the overlay, unless a newer value of
// the account has the same program.
func (t *accounts) unlistProgram(w *written, end position) {
	supports := func(newer *written) bool {
		program, ok := newer.program()
		return ok && *program == w.owner
	}
	if !t.supported(w, end, supports) {
		t.programs.remove(w.owner, w.key)
	}
}

// unlistWallet does the same for the index of wallets.
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

// supported reports whether reason holds for a newer value that readers can still see: one that stays in the overlay,
// or the newest before end, which goes into the base. Older ones are skipped: for an account that changes its group
// in every version, looking at all of them for each value would take quadratic time.
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
