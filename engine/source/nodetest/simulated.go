package nodetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/sim"
)

// defaultFinality is how many slots after a block it is final, where that is not said.
const defaultFinality = 8

// Turn is what the simulator does not do by itself: slots before the n-th block of the chain that stays, without blocks, or with those of a
// branch that the chain leaves behind. That block and all after it move up.
type Turn struct {
	Before int // at least 1
	Slots  int
	IsFork bool
}

// Simulated returns the ledger of a simulator's parameters, which must name slots, with some turns; blocks are final so many slots after
// their own, 0: 8. By their hashes blocks off the chain that stays are abandoned, break half-way, or are taken back whole, and the slots
// of some blocks first show another one, which is taken back.
func Simulated(parameters string, finality ledger.Slot, turns ...Turn) (*Ledger, error) {
	source, err := sim.Open(parameters)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(parameters, "slots=") {
		return nil, fmt.Errorf("a test node needs an end: add slots=N to %q", parameters)
	}
	t := builder{
		turns: turns, ledger: &Ledger{Base: &ledger.BaseState{}}, stays: make(map[ledger.Hash]bool), slots: make(map[ledger.Hash]ledger.Slot),
	}
	if err := source.Run(context.Background(), nil, t.take); err != nil {
		return nil, err
	}
	t.build(max(cmp.Or(finality, defaultFinality), confirmLag))
	return t.ledger, nil
}

// builder makes a ledger of a simulator's run.
type builder struct {
	turns  []Turn
	ledger *Ledger
	blocks []*ledger.Block             // all, as they came
	stays  map[ledger.Hash]bool        // blocks that were confirmed
	slots  map[ledger.Hash]ledger.Slot // that blocks moved up to
	shift  ledger.Slot                 // how far the next one moves
}

func (t *builder) take(_ context.Context, e ledger.Event) error {
	switch e := e.(type) {
	case *ledger.BaseState:
		t.ledger.Base.Slot = e.Slot
		t.ledger.Base.Accounts = append(t.ledger.Base.Accounts, e.Accounts...)
		t.ledger.Base.Mints = append(t.ledger.Base.Mints, e.Mints...)
	case *ledger.Block:
		t.blocks = append(t.blocks, e)
	case *ledger.SlotStatus:
		t.stays[e.Blockhash.Value] = true
	}
	return nil
}

// build makes the steps.
func (t *builder) build(finality ledger.Slot) {
	l, events := t.ledger, t.events()
	l.first = events[0].block.Slot
	l.Slots = int(l.main[len(l.main)-1].Slot + finality - l.first + 1)
	l.steps = make([][]event, l.Slots)
	happens := func(after ledger.Slot, e event) {
		at := e.block.Slot - l.first + after
		l.steps[at] = append(l.steps[at], e)
	}
	for _, e := range events {
		happens(0, e)
	}
	for _, b := range l.main {
		happens(confirmLag, event{confirmed, b})
	}
	for _, b := range l.main {
		happens(finality, event{finalized, b})
	}
	l.index()
}

// events returns what happens but for what slots come to. Blocks after the newest confirmed one are left out: nobody can say
// which of them stay.
func (t *builder) events() (all []event) {
	last := len(t.blocks)
	for last > 0 && !t.stays[t.blocks[last-1].Blockhash] {
		last--
	}
	gone := make(map[ledger.Hash]bool) // nothing builds on these
	for _, b := range t.blocks[:last] {
		stays := t.stays[b.Blockhash]
		if stays {
			all = append(all, t.turn(b)...)
		}
		b = t.move(b)
		what, chance := produced, b.Blockhash[0]
		switch {
		case stays:
			if main := t.ledger.main; chance%32 == 0 && len(main) > 0 {
				all = append(all, event{overturned, stray(b, main[len(main)-1], b.Slot)})
			}
			t.ledger.main = append(t.ledger.main, b)
		case gone[b.PreviousBlockhash.Value]:
			gone[b.Blockhash] = true
			continue
		default:
			what = eventKind(chance % 3) // produced, failed or overturned
			gone[b.Blockhash] = what != produced
		}
		all = append(all, event{what, b})
	}
	return all
}

// turn returns what happens in the turns before a block of the chain that stays.
func (t *builder) turn(b *ledger.Block) (all []event) {
	main := t.ledger.main
	for _, turn := range t.turns {
		if turn.Before != len(main) {
			continue
		}
		on := main[len(main)-1]
		for range turn.Slots {
			if turn.IsFork {
				on = stray(b, on, b.Slot+t.shift)
				all = append(all, event{produced, on})
			}
			t.shift++
		}
	}
	return all
}

// move returns a block at the slot that it moves up to.
func (t *builder) move(b *ledger.Block) *ledger.Block {
	parent, isMoved := t.slots[b.PreviousBlockhash.Value]
	if !isMoved {
		parent = b.ParentSlot
	}
	t.slots[b.Blockhash] = b.Slot + t.shift
	return at(b, b.Slot+t.shift, parent)
}

// at returns a copy of a block at another place.
func at(b *ledger.Block, slot, parent ledger.Slot) *ledger.Block {
	c := *b
	c.Slot, c.ParentSlot, c.Transactions = slot, parent, nil
	for _, tx := range b.Transactions {
		c.AddTransaction(tx)
	}
	return &c
}

// stray returns a block that does not stay: it does about what b does, on another parent, and leaves every account differently.
func stray(b, parent *ledger.Block, slot ledger.Slot) *ledger.Block {
	c := at(b, slot, parent.Slot)
	c.Blockhash = sha256.Sum256(fmt.Append(parent.Blockhash[:], slot))
	c.PreviousBlockhash, c.Height.Value = ledger.Some(parent.Blockhash), parent.Height.Value+1
	c.Accounts = slices.Clone(b.Accounts)
	for i := range c.Accounts {
		w := &c.Accounts[i]
		switch {
		case w.Lamports == 0:
			*w = ledger.AccountWrite{Pubkey: w.Pubkey, Lamports: 77, Owner: ledger.VoteProgram, RentEpoch: 3, Known: ledger.FieldsAll}
		case (i+int(slot))%5 == 4:
			*w = ledger.AccountWrite{Pubkey: w.Pubkey, Known: ledger.FieldsAll}
		default:
			w.Lamports += ledger.Lamports(slot)
		}
	}
	for i := range c.Transactions {
		sum := sha256.Sum256(append(c.Blockhash[:], c.Transactions[i].Signature[:]...))
		copy(c.Transactions[i].Signature[:], sum[:])
	}
	return c
}
