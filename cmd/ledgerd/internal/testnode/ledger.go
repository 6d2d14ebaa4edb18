package testnode

import (
	"cmp"
	"encoding/json"
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

	main    []*block // the chain that stays, in order
	steps   []step
	history map[ledger.Pubkey][]version // on the chain that stays
}

// block is a block as a node tells it.
type block struct {
	*ledger.Block
	recorded json.RawMessage // the answer to getBlock as it was recorded, nil if it is made
}

// step is what happens in one slot.
type step struct {
	slot   ledger.Slot
	events []event
	told   []*message // of a recorded stream, instead of events
}

// event is one thing that happens: the block of a slot, or what a slot came to.
type event struct {
	what  eventKind
	block *block
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

// claim returns 0 for a block, and more for what one came to.
func (h eventKind) claim() int { return max(0, int(h)-int(confirmed)+1) }

// version is an account as a block of the chain that stays left it.
type version struct {
	slot  ledger.Slot
	write *ledger.AccountWrite
}

// Main returns the blocks of the chain that stays, in order. They must not be changed.
func (l *Ledger) Main() []*ledger.Block {
	blocks := make([]*ledger.Block, len(l.main))
	for i, b := range l.main {
		blocks[i] = b.Block
	}
	return blocks
}

// index notes which account stands how at which slot.
func (l *Ledger) index() {
	l.history = make(map[ledger.Pubkey][]version)
	if l.Base != nil {
		for i := range l.Base.Accounts {
			w := &l.Base.Accounts[i]
			l.history[w.Pubkey] = append(l.history[w.Pubkey], version{l.Base.Slot, w})
		}
	}
	for _, b := range l.main {
		for i := range b.Accounts {
			w := &b.Accounts[i]
			l.history[w.Pubkey] = append(l.history[w.Pubkey], version{b.Slot, w})
		}
	}
}

// at returns the account as it stood at the end of a slot, nil if it did not exist.
func (l *Ledger) at(key ledger.Pubkey, slot ledger.Slot) *ledger.AccountWrite {
	versions := l.history[key]
	n, _ := slices.BinarySearchFunc(versions, slot, func(v version, s ledger.Slot) int {
		if v.slot <= s {
			return -1
		}
		return 1
	})
	if n == 0 || versions[n-1].write.Lamports == 0 {
		return nil
	}
	return versions[n-1].write
}

// lamportsBefore returns the lamports of an account before a slot.
func (l *Ledger) lamportsBefore(key ledger.Pubkey, slot ledger.Slot) ledger.Lamports {
	if slot == 0 {
		return 0
	}
	if w := l.at(key, slot-1); w != nil {
		return w.Lamports
	}
	return 0
}

// mainAt returns the block of the chain that stays at a slot, nil if there is none.
func (l *Ledger) mainAt(slot ledger.Slot) *block {
	i, found := slices.BinarySearchFunc(l.main, slot, func(b *block, s ledger.Slot) int { return cmp.Compare(b.Slot, s) })
	if !found {
		return nil
	}
	return l.main[i]
}

// StateAt returns every account that exists at the end of a slot of the chain that stays, in no order,
// and the mint facts with it.
func (l *Ledger) StateAt(slot ledger.Slot) *ledger.BaseState {
	s := &ledger.BaseState{Slot: slot}
	for key := range l.history {
		if w := l.at(key, slot); w != nil {
			s.Accounts = append(s.Accounts, *w)
		}
	}
	return s
}

// StateHash returns the state hash of a node that holds every account of the chain that stays at
// the end of a slot.
func (l *Ledger) StateHash(slot ledger.Slot) (sum ledger.StateHash) {
	for key := range l.history {
		w := l.at(key, slot)
		if w == nil {
			continue
		}
		a := ledger.Merge(nil, w, ledger.BaseProvenance(slot))
		sum.Add(a.StateTerm())
		if w.Mint != nil {
			sum.Add(w.Mint.StateTerm(key))
		}
	}
	return sum
}

// Events returns what a source without a fault would emit of the ledger: the base, every whole block, those of
// forks too, and what they came to.
func (l *Ledger) Events() []ledger.Event {
	var events []ledger.Event
	if l.Base != nil {
		events = append(events, l.Base)
	}
	for _, s := range l.steps {
		for _, e := range s.events {
			status := func(s ledger.Status) {
				events = append(events, &ledger.SlotStatus{Slot: e.block.Slot, Status: s, Blockhash: ledger.Some(e.block.Blockhash)})
			}
			switch e.what {
			case produced:
				events = append(events, e.block.Block)
			case overturned:
				events = append(events, e.block.Block)
				status(ledger.StatusDead)
			case confirmed:
				status(ledger.StatusConfirmed)
			case finalized:
				status(ledger.StatusFinalized)
			}
		}
	}
	return events
}
