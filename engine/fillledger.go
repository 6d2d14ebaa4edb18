package engine

import (
	"slices"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

const (
	// maxTouches and maxTouchBlocks bound the keys that are kept as written lately, at 32 bytes
	// each: what is older the node has to be past. It is a minute of a busy ledger.
	maxTouches     = 1 << 19
	maxTouchBlocks = 512
	// maxUnsettled bounds the keys that were learned above the finalized block. Past it nothing
	// is fetched until finality goes on.
	maxUnsettled = 1 << 16
)

// fillLedger is what the sequencer knows for the sake of filling. See "When an answer is good".
// Nil does nothing.
type fillLedger struct {
	filler *filler

	// Keys that blocks wrote, of all blocks of the chain above horizon, oldest first.
	touches []touch
	touched int
	horizon ledger.Slot

	unsettled []settling // base state above the finalized block
	keys      int
}

// touch is what one block wrote.
type touch struct {
	slot         ledger.Slot
	closed, kept []ledger.Pubkey // by what a write of a key left; one may be in both
}

func (t *touch) len() int { return len(t.closed) + len(t.kept) }

type settling struct {
	slot ledger.Slot
	keys []ledger.Pubkey
}

// from says that nothing is known of the blocks up to a slot.
func (l *fillLedger) from(slot ledger.Slot) {
	if l != nil {
		l.horizon = slot
	}
}

// appended notes what a block closed and what it made.
func (l *fillLedger) appended(n *chain.Node) {
	if l == nil {
		return
	}
	b := n.Block
	if n.Parent == nil {
		l.from(b.Slot)
	}
	c := touch{slot: b.Slot, kept: make([]ledger.Pubkey, 0, len(b.Accounts))}
	for i := range b.Accounts {
		if w := &b.Accounts[i]; w.Lamports == 0 {
			c.closed = append(c.closed, w.Pubkey)
		} else {
			c.kept = append(c.kept, w.Pubkey)
		}
	}
	l.touches, l.touched = append(l.touches, c), l.touched+c.len()
	for len(l.touches) > 0 && (len(l.touches) > maxTouchBlocks || l.touched > maxTouches) {
		l.horizon, l.touched = l.touches[0].slot, l.touched-l.touches[0].len()
		l.touches[0] = touch{} // the array lives on, the keys must not
		l.touches = l.touches[1:]
	}
	l.filler.mu.Lock()
	l.filler.absent.made(b.Accounts)
	l.filler.mu.Unlock()
}

// learned notes base state above the finalized block.
func (l *fillLedger) learned(b *ledger.BaseState, finalized *chain.Node) {
	if l == nil || finalized == nil || b.Slot <= finalized.Slot() {
		return
	}
	s := settling{slot: b.Slot}
	for i := range b.Accounts {
		s.keys = append(s.keys, b.Accounts[i].Pubkey)
	}
	l.unsettled, l.keys = append(l.unsettled, s), l.keys+len(s.keys)
	// Only a source that tells base state by itself gets here: what is wanted is bounded before.
	for len(l.unsettled) > 1 && l.keys > 2*maxUnsettled {
		l.keys -= len(l.unsettled[0].keys)
		l.unsettled = l.unsettled[1:]
	}
	l.filler.unsettled.Store(int64(l.keys))
}

// finalized settles what was learned up to the newest finalized slot.
func (l *fillLedger) finalized(slot ledger.Slot) {
	if l != nil {
		l.settle(func(s settling) bool { return s.slot <= slot })
	}
}

func (l *fillLedger) settle(over func(settling) bool) {
	l.unsettled = slices.DeleteFunc(l.unsettled, over)
	l.keys = 0
	for _, s := range l.unsettled {
		l.keys += len(s.keys)
	}
	l.filler.unsettled.Store(int64(l.keys))
}

// rolledBack has everything asked for again that was learned of a slot above the one that the
// chain went back to: it may tell what only the undone blocks did.
func (l *fillLedger) rolledBack(to ledger.Slot) {
	if l == nil {
		return
	}
	for n := len(l.touches); n > 0 && l.touches[n-1].slot > to; n-- {
		l.touched -= l.touches[n-1].len()
		l.touches = l.touches[:n-1]
	}
	f := l.filler
	f.undone.Add(1)
	f.mu.Lock()
	f.absent.clear()
	for _, s := range l.unsettled {
		if s.slot > to {
			f.doubtLocked(s)
		}
	}
	f.mu.Unlock()
	l.settle(func(s settling) bool { return s.slot > to })
}

// doubtLocked wants keys to be confirmed as of their slot or later.
func (f *filler) doubtLocked(s settling) {
	f.stats.doubted.Add(uint64(len(s.keys)))
	for _, k := range s.keys {
		if w := f.wants[k]; w != nil {
			w.atLeast, w.held, w.doubted = max(w.atLeast, s.slot), true, true
			if w.learned != 0 { // what taught it is undone
				w.learned = 0
				f.queue = append(f.queue, k)
				f.wakeUp()
			}
			continue
		}
		f.addLocked(k, want{atLeast: s.slot, held: true, doubted: true})
	}
}

// lastWrite is what the newest block that wrote an account did.
type lastWrite struct {
	slot   ledger.Slot
	closed bool
}

// after returns which of the keys were written after a slot. It is false where not all of that is
// known, or where no block of the chain is of that slot: then it is another chain's.
func (l *fillLedger) after(slot ledger.Slot, keys []ledger.Pubkey) (map[ledger.Pubkey]lastWrite, bool) {
	if slot < l.horizon || slot > l.horizon && !slices.ContainsFunc(l.touches, func(t touch) bool { return t.slot == slot }) {
		return nil, false
	}
	asked := make(map[ledger.Pubkey]bool, len(keys))
	for _, k := range keys {
		asked[k] = true
	}
	written := make(map[ledger.Pubkey]lastWrite)
	for i := range l.touches {
		t := &l.touches[i]
		if t.slot <= slot {
			continue
		}
		for _, k := range t.closed {
			if asked[k] {
				written[k] = lastWrite{t.slot, true}
			}
		}
		for _, k := range t.kept { // of a key in both who knows which was last: then the node is asked again
			if asked[k] {
				written[k] = lastWrite{t.slot, false}
			}
		}
	}
	return written, true
}

// learn learns what was fetched, if it is good.
func (e *Engine) learn(r *fetched) error {
	f, s := e.fill, e.seq
	switch {
	case e.frozen.Load() != nil || e.commits.failed || e.backlog.waits() || s.overflows() || s.chain.Tip == nil:
		f.end(r.keys, errNothingLearned)
		return nil
	case r.base.Slot > s.chain.Confirmed.Slot():
		f.giveBack(r)
		return nil
	}
	written, known := s.fills.after(r.base.Slot, r.keys)
	if !known || r.undone != f.undone.Load() {
		f.postpone(r.keys)
		return nil
	}
	base, absent := f.partition(r, written)
	var err error
	if len(base.Accounts)+len(base.Mints) > 0 {
		err = s.base(base)
		e.commits.events++
	}
	f.settled(r.keys, absent, s.version)
	return err
}

// partition returns what is to be learned of an answer, and since when which keys do not exist. It
// leaves the keys in r whose wants that serves.
func (f *filler) partition(r *fetched, written map[ledger.Pubkey]lastWrite) (*ledger.BaseState, map[ledger.Pubkey]ledger.Slot) {
	var old []ledger.Pubkey
	learnable := make(map[ledger.Pubkey]bool, len(r.keys))
	absent := make(map[ledger.Pubkey]ledger.Slot)
	base := &ledger.BaseState{Slot: r.base.Slot}
	f.mu.Lock()
	r.keys = r.keys[:0]
	for i := range r.base.Accounts {
		write := &r.base.Accounts[i]
		k := write.Pubkey
		last, wasWritten := written[k]
		switch w := f.wants[k]; {
		case w == nil: // it ended meanwhile
			continue
		case r.base.Slot < w.atLeast:
			old = append(old, k)
			continue
		case wasWritten && last.closed:
			absent[k] = last.slot
		case wasWritten && !w.held: // it is held now or, with a filter, nobody here knows it any more
			w.atLeast = last.slot
			old = append(old, k)
			continue
		case write.Lamports == 0 && !w.held:
			absent[k] = r.base.Slot
		default:
			base.Accounts, learnable[k] = append(base.Accounts, *write), true
		}
		r.keys = append(r.keys, k)
	}
	f.mu.Unlock()
	for _, m := range r.base.Mints {
		if learnable[m.Pubkey] {
			base.Mints = append(base.Mints, m)
		}
	}
	if len(old) > 0 {
		f.postpone(old)
	}
	return base, absent
}

// giveBack takes an answer back that came too early: what is visible is confirmed further than what
// is being done. It is offered again when that may have become visible.
func (f *filler) giveBack(r *fetched) {
	r.due = time.Now().Add(offerAgainAfter)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returned = append(f.returned, r)
	f.wakeUp()
}

// settled remembers what does not exist, and has the others waited for until the version is
// visible.
func (f *filler) settled(keys []ledger.Pubkey, absent map[ledger.Pubkey]ledger.Slot, v ledger.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	var taught []ledger.Pubkey
	for _, k := range keys {
		if since, is := absent[k]; is {
			f.absent.add(k, absentKey{since: since}, now)
			f.endLocked(k, nil)
		} else {
			taught = append(taught, k)
			if w := f.wants[k]; w != nil {
				w.learned = v
			}
		}
	}
	if len(taught) > 0 {
		f.learning = append(f.learning, learning{v, taught})
	}
}

// shown ends the wants that a published head answers.
func (f *filler) shown(v ledger.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visible = v
	for len(f.learning) > 0 && f.learning[0].version <= v {
		for _, k := range f.learning[0].keys {
			if w := f.wants[k]; w != nil && w.learned == f.learning[0].version {
				f.endLocked(k, nil)
			}
		}
		f.learning = f.learning[1:]
	}
}
