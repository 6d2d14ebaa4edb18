package fill

import (
	"slices"

	"ledgerd/engine/ledger"
)

// Answer is the node's answer to a request for some accounts.
type Answer struct {
	base *ledger.BaseState // has each requested key once
	left []ledger.Pubkey   // keys that are not ended; Learn ends some, which may be pending anew after it

	// The outcome, to be read after done is closed.
	done      chan struct{}
	err       error           // why nothing was applied
	version   ledger.Version  // from which on the state has the result for inState
	inState   []ledger.Pubkey // keys that are held, or excluded by the filter
	tooOld    []ledger.Pubkey // keys to request again
	rollbacks uint64          // Filler.rollbacks when the answer was applied
}

// Answers returns the channel of answers for the sequencer, nil for a nil Filler. The sequencer must end each
// answer that it takes by Done or Refuse.
func (f *Filler) Answers() <-chan *Answer {
	if f == nil {
		return nil
	}
	return f.answers
}

// Refuse ends an answer that is not applied because ingest has stopped or is paused.
func (a *Answer) Refuse() {
	a.err = errFrozen
	close(a.done)
}

// Done ends an answer that was applied. v is the newest version of the sequencer.
func (a *Answer) Done(v ledger.Version) {
	a.version = v
	close(a.done)
}

// Begin is called when the sequencer begins with the state after a slot and without its blocks.
func (f *Filler) Begin(slot ledger.Slot) {
	f.update(func() { f.recent.horizon = slot })
}

// Appended records the writes of a block that became the tip of the chain.
func (f *Filler) Appended(b *ledger.Block) {
	f.update(func() {
		f.recent.add(b)
		for i := range b.Accounts {
			if w := &b.Accounts[i]; w.Lamports > 0 {
				delete(f.negative, w.Pubkey)
			}
		}
		f.wantMintsLocked(b)
	})
}

// RolledBack records that the chain was rolled back to a slot.
func (f *Filler) RolledBack(to ledger.Slot) {
	f.update(func() {
		f.rollbacks++
		f.recent.rollBack(to)
		clear(f.negative)
	})
}

// Learn returns the base state to apply for an answer, nil for none. No block may be applied between Learn and the record of
// that base state. See "When an answer is valid" in the package comment.
func (f *Filler) Learn(a *Answer) *ledger.BaseState {
	f.mu.Lock()
	defer f.mu.Unlock()
	a.rollbacks = f.rollbacks
	base := &ledger.BaseState{Slot: a.base.Slot}
	for i := range a.base.Accounts {
		w := &a.base.Accounts[i]
		p := f.pending[w.Pubkey]
		if p == nil {
			continue // the filler has stopped
		}
		alive, closed := f.recent.after(base.Slot, w.Pubkey)
		switch {
		case base.Slot < max(p.atLeast, f.recent.horizon):
			a.tooOld = append(a.tooOld, w.Pubkey)
		case p.partial && closed != 0 || !p.partial && alive: // the held account was reopened after the answer, or is not older than it
			a.inState = append(a.inState, w.Pubkey)
		case closed != 0 || w.Lamports == 0:
			f.addNegativeLocked(w.Pubkey, absence{since: max(closed, base.Slot)})
			f.endLocked(nil, w.Pubkey)
		default:
			base.Accounts = append(base.Accounts, *w)
			a.inState = append(a.inState, w.Pubkey)
			if p.isMint {
				f.knownLocked(w.Pubkey)
			}
		}
	}
	a.left = slices.Concat(a.inState, a.tooOld)
	f.stats.Stale += uint64(len(a.tooOld))
	if len(base.Accounts) == 0 {
		return nil
	}
	return base
}
