package fill

import (
	"time"

	"ledgerd/engine/ledger"
)

// Answer is what the node said of some accounts.
type Answer struct {
	keys []ledger.Pubkey
	base *ledger.BaseState

	// What came of it, to be read after done is closed.
	done       chan struct{}
	err        error           // nothing of it was learned
	version    ledger.Version  // from which on the state tells
	stateTells []ledger.Pubkey // whether they are held
	tooOld     []ledger.Pubkey // to be asked for again
	rollbacks  uint64          // how many there were before
}

// Answers returns the channel on which the sequencer is offered answers, nil where nothing is fetched. Each
// answer taken is ended by Done or Refuse.
func (f *Filler) Answers() <-chan *Answer {
	if f == nil {
		return nil
	}
	return f.answers
}

// Refuse ends an answer of which nothing can be learned, as ingest stands still.
func (a *Answer) Refuse() {
	a.err = errFrozen
	close(a.done)
}

// Done ends an answer that was learned, as of the newest version of the sequencer.
func (a *Answer) Done(v ledger.Version) {
	a.version = v
	close(a.done)
}

// Begin says that the blocks up to a slot are not known, but the state after them is.
func (f *Filler) Begin(slot ledger.Slot) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched.begin(slot)
}

// Appended notes what a block wrote that became the tip of the chain.
func (f *Filler) Appended(b *ledger.Block) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched.add(b)
	f.negative.forgetAlive(b.Accounts)
}

// RolledBack notes that the chain went back to a slot.
func (f *Filler) RolledBack(to ledger.Slot) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rollbacks++
	f.touched.rollBack(to)
	f.negative.clear()
}

// Learn returns the base state that an answer teaches, nil for none. No block may come between it and its record. See
// "When an answer is good" of the package.
func (f *Filler) Learn(a *Answer) *ledger.BaseState {
	f.mu.Lock()
	defer f.mu.Unlock()
	slot, now := a.base.Slot, time.Now()
	if slot < f.touched.horizon {
		a.tooOld = a.keys
		return nil
	}
	a.rollbacks = f.rollbacks
	base := &ledger.BaseState{Slot: slot}
	for i := range a.base.Accounts {
		w := &a.base.Accounts[i]
		p := f.pending[w.Pubkey]
		if p == nil {
			continue // the filler was stopped
		}
		alive, closed := f.touched.after(slot, w.Pubkey)
		absent := func(since ledger.Slot) {
			f.negative.add(w.Pubkey, absence{since: since}, now)
			f.endLocked(w.Pubkey, nil)
		}
		switch {
		case slot < p.atLeast:
			a.tooOld = append(a.tooOld, w.Pubkey)
		case p.partial && closed != 0 || !p.partial && alive: // what is held is of a later life than the answer, or not older
			a.stateTells = append(a.stateTells, w.Pubkey)
		case closed != 0:
			absent(closed)
		case w.Lamports == 0:
			absent(slot)
		default:
			base.Accounts = append(base.Accounts, *w)
			a.stateTells = append(a.stateTells, w.Pubkey)
		}
	}
	if len(base.Accounts) == 0 {
		return nil
	}
	return base
}
