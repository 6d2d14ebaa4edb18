package nodetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/sim"
)

// Plan adds to a simulated ledger what its simulator does not do by itself. The zero value adds nothing.
type Plan struct {
	Finality ledger.Slot // slots from a block to its finality; 0: 8
	Turns    []Turn
}

// Turn is something that happens before the n-th block of the chain that stays.
type Turn struct {
	Before int // counted from 0; the first block has none before it
	Kind   TurnKind
	Depth  int // how many slots it takes: of a fork as many blocks on the wrong branch
}

// TurnKind says what a turn is.
type TurnKind uint8

const (
	Fork       TurnKind = iota // a branch that the next block leaves behind
	DeadSlot                   // a slot whose block breaks half-way
	DeadBlock                  // a whole block that is taken back
	Twice                      // the next block's slot first shows another block, which is taken back
	SkippedRun                 // slots without a block
	turnKinds
)

// String names the kind.
func (k TurnKind) String() string {
	return [...]string{"fork", "dead slot", "dead block", "block made twice", "skipped slots"}[k]
}

const defaultFinality = 8

// Simulated returns the ledger of a simulator's parameters, which must name slots, with the turns of a
// plan put in between: slots move up to make room.
func Simulated(parameters string, plan Plan) (*Ledger, error) {
	source, err := sim.Open(parameters)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(parameters, "slots=") {
		return nil, fmt.Errorf("a test node needs an end: add slots=N to %q", parameters)
	}
	t := builder{plan: plan, ledger: &Ledger{Base: &ledger.BaseState{}}, moved: make(map[ledger.Hash]*ledger.Block), stays: make(map[ledger.Hash]bool)}
	if err := source.Run(context.Background(), nil, t.take); err != nil {
		return nil, err
	}
	t.build()
	return t.ledger, nil
}

// builder makes a ledger of a simulator's run.
type builder struct {
	plan   Plan
	ledger *Ledger

	blocks []*ledger.Block      // all, as they came
	stays  map[ledger.Hash]bool // blocks that were confirmed
	moved  map[ledger.Hash]*ledger.Block
	shift  ledger.Slot // how far slots have moved up
	events []event     // but for what slots came to
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

// build makes the steps. Blocks after the newest confirmed one are left out: nobody can say
// which of them stay.
func (t *builder) build() {
	last := len(t.blocks)
	for last > 0 && !t.stays[t.blocks[last-1].Blockhash] {
		last--
	}
	l := t.ledger
	for _, b := range t.blocks[:last] {
		stays := t.stays[b.Blockhash]
		twice := stays && t.turns(b)
		moved := t.move(b)
		if twice {
			t.add(overturned, twin(moved))
		}
		t.add(produced, moved)
		if stays {
			l.main = append(l.main, moved)
		}
	}
	finality := max(cmp.Or(t.plan.Finality, defaultFinality), confirmLag)
	l.first = t.events[0].block.Slot
	l.Slots = int(l.main[len(l.main)-1].Slot + finality - l.first + 1)
	l.steps = make([][]event, l.Slots)
	happens := func(after ledger.Slot, e event) {
		at := e.block.Slot - l.first + after
		l.steps[at] = append(l.steps[at], e)
	}
	for _, e := range t.events {
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

func (t *builder) add(what eventKind, b *ledger.Block) { t.events = append(t.events, event{what, b}) }

// move returns a block at the slot it has come to.
func (t *builder) move(b *ledger.Block) *ledger.Block {
	parent := b.ParentSlot
	if p := t.moved[b.PreviousBlockhash.Value]; p != nil {
		parent = p.Slot
	}
	m := rewrite(b, b.Slot+t.shift, parent)
	t.moved[b.Blockhash] = m
	return m
}

// rewrite returns a copy of a block at another place.
func rewrite(b *ledger.Block, slot, parent ledger.Slot) *ledger.Block {
	c := *b
	c.Slot, c.ParentSlot, c.Transactions = slot, parent, nil
	for _, tx := range b.Transactions {
		c.AddTransaction(tx)
	}
	return &c
}

// turns tells what happens before a block of the chain that stays, and whether its slot first shows
// another block.
func (t *builder) turns(b *ledger.Block) (twice bool) {
	for _, turn := range t.plan.Turns {
		on := t.moved[b.PreviousBlockhash.Value]
		switch {
		case turn.Before != len(t.ledger.main) || on == nil:
			continue
		case turn.Kind == Twice:
			twice = true
			continue
		}
		for i := range turn.Depth {
			wrong := astray(b, on, b.Slot+t.shift, i)
			switch turn.Kind {
			case Fork: // each on the one before; b then leaves them behind
				t.add(produced, wrong)
				on = wrong
			case DeadSlot:
				t.add(failed, wrong)
			case DeadBlock:
				t.add(overturned, wrong)
			}
			t.shift++
		}
	}
	return twice
}

// astray returns a block that does not stay: it does about what b does, on another parent, and leaves
// every account differently.
func astray(b, parent *ledger.Block, slot ledger.Slot, n int) *ledger.Block {
	c := rewrite(b, slot, parent.Slot)
	c.PreviousBlockhash = ledger.Some(parent.Blockhash)
	c.Height.Value = parent.Height.Value + 1
	salt := binary.LittleEndian.AppendUint64(nil, uint64(slot))
	c.Blockhash = sha256.Sum256(append(append(salt, byte(n)), parent.Blockhash[:]...))
	c.Accounts = slices.Clone(b.Accounts)
	for i := range c.Accounts {
		w := &c.Accounts[i]
		switch {
		case w.Lamports == 0:
			*w = ledger.AccountWrite{Pubkey: w.Pubkey, Lamports: 77, Owner: ledger.VoteProgram, RentEpoch: 3, Known: ledger.FieldsAll}
		case (i+n)%5 == 4:
			*w = ledger.AccountWrite{Pubkey: w.Pubkey, Known: ledger.FieldsAll}
		default:
			w.Lamports += ledger.Lamports(1 + n)
		}
	}
	for i := range c.Transactions {
		sum := sha256.Sum256(append(salt, c.Transactions[i].Signature[:]...))
		copy(c.Transactions[i].Signature[:], sum[:])
	}
	return c
}

// twin returns another block of the same slot on the same parent.
func twin(b *ledger.Block) *ledger.Block {
	parent := &ledger.Block{Slot: b.ParentSlot, Blockhash: b.PreviousBlockhash.Value}
	parent.Height.Value = b.Height.Value - 1
	return astray(b, parent, b.Slot, 200)
}
