package shard

import "ledgerd/engine/ledger"

// fold moves accounts of versions up to v into the base, at most budget of them, and reports
// whether there is more to do. It calls settled with each that is now there.
func (t *accounts) fold(v ledger.Version, budget int, settled func(now *ledger.Account)) (more bool) {
	n := t.overlay.upTo(v)
	// Touch all records first: the processor then waits for many lines of memory at once, which
	// takes a third off the fold.
	for i := range min(n, budget) {
		if w := t.overlay.written.at(t.overlay.written.nth(i)); w.base != 0 {
			t.touched += t.base.vault.records.at(w.base).meta
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
		t.unlistProgram(w)
	}
	if w.byWallet {
		t.unlistWallet(w)
	}
	t.overlay.drop(w)
}

// settle makes what the base holds of a key what w says, and returns the record, 0 for none.
func (t *accounts) settle(w *written, settled func(now *ledger.Account)) (now ref) {
	before := w.base
	if before == 0 {
		before = t.base.get(&w.key)
	}
	if w.absent {
		if before != 0 {
			t.base.drop(before)
		}
	} else {
		t.overlay.unpack(w, &t.folding)
		now = t.base.put(before, &t.folding)
		settled(&t.folding)
	}
	switch {
	case now == 0 && w.newer != 0:
		t.novel.Set(w.key)
	case t.novel.Len() > 0 && (before == 0 || now == 0):
		t.novel.Delete(w.key)
	default:
		return now
	}
	t.ofNovel.writes++
	return now
}

// forget removes an account from the base that is folded.
func (t *accounts) forget(key *ledger.Pubkey) {
	t.base.remove(key)
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
	t.ofNovel.writes++
	t.novel.Set(*key)
}

// unlistProgram removes what the overlay lists of a value that leaves it, unless a newer version of
// the account still supports it. The base lists its own.
func (t *accounts) unlistProgram(w *written) {
	for p := w.newer; p != 0; {
		newer := t.overlay.written.at(p)
		if program, ok := newer.program(); ok && *program == w.owner {
			return
		}
		p = newer.newer
	}
	t.programs.remove(w.owner, w.key)
}

func (t *accounts) unlistWallet(w *written) {
	was, _ := t.overlay.wallet(w)
	for p := w.newer; p != 0; {
		newer := t.overlay.written.at(p)
		if wallet, ok := t.overlay.wallet(newer); ok && *wallet == *was {
			return
		}
		p = newer.newer
	}
	t.holders.remove(*was, w.key)
}
