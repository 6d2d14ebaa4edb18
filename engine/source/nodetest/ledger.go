package nodetest

import (
	"slices"

	"ledgerd/engine/ledger"
)

// confirmLag is how many slots a block is confirmed after it.
const confirmLag = 2

// Ledger is what happened: a tree of blocks, and slot after slot what a node tells of them. It does not
// change once it is made, and any number of nodes may tell it.
type Ledger struct {
	// Base is the state before the first block, whole.
	Base *ledger.BaseState
	// Slots is how often a node can advance until it told everything.
	Slots int

	main    []*ledger.Block // the chain that stays, in order
	first   ledger.Slot
	steps   [][]event                   // what happens in each slot from the first on
	history map[ledger.Pubkey][]version // on the chain that stays
}

// event is one thing that happens: the block of a slot, or what a slot came to.
type event struct {
	what  eventKind
	block *ledger.Block
}

// eventKind says what an event is.
type eventKind uint8

const (
	produced   eventKind = iota // a block, from its first shred to the processed status
	failed                      // a block of which only a part comes; then its slot is dead
	overturned                  // a whole block; then its slot is dead
	confirmed
	finalized
)

// version is an account as a block of the chain that stays left it.
type version struct {
	slot  ledger.Slot
	write *ledger.AccountWrite
}

// Main returns the blocks of the chain that stays, in order. They must not be changed.
func (l *Ledger) Main() []*ledger.Block { return l.main }

// index notes which account stands how at which slot.
func (l *Ledger) index() {
	l.history = make(map[ledger.Pubkey][]version)
	wrote := func(slot ledger.Slot, writes []ledger.AccountWrite) {
		for i := range writes {
			w := &writes[i]
			l.history[w.Pubkey] = append(l.history[w.Pubkey], version{slot, w})
		}
	}
	wrote(l.Base.Slot, l.Base.Accounts)
	for _, b := range l.main {
		wrote(b.Slot, b.Accounts)
	}
}

// at returns the account as it stood at the end of a slot, nil if it did not exist.
func (l *Ledger) at(key ledger.Pubkey, slot ledger.Slot) *ledger.AccountWrite {
	for _, v := range slices.Backward(l.history[key]) {
		switch {
		case v.slot > slot:
		case v.write.Lamports == 0:
			return nil
		default:
			return v.write
		}
	}
	return nil
}

// Accounts returns every account of the chain that stays as it is at the end of a slot, nil where it does not exist.
func (l *Ledger) Accounts(slot ledger.Slot) map[ledger.Pubkey]*ledger.AccountWrite {
	all := make(map[ledger.Pubkey]*ledger.AccountWrite, len(l.history))
	for key := range l.history {
		all[key] = l.at(key, slot)
	}
	return all
}

// StateHash returns the state hash of a node that holds every account of the chain that stays at
// the end of a slot.
func (l *Ledger) StateHash(slot ledger.Slot) (sum ledger.StateHash) {
	for key, w := range l.Accounts(slot) {
		if w == nil {
			continue
		}
		sum.Add(ledger.Merge(nil, w, ledger.BaseProvenance(slot)).StateTerm())
		if w.Mint != nil {
			sum.Add(w.Mint.StateTerm(key))
		}
	}
	return sum
}
