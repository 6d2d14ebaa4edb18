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
	Depth  int // of a fork: how many blocks are built on the wrong branch; of skips: how many slots
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
	if t.plan.Finality == 0 {
		t.plan.Finality = defaultFinality
	}
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
	told   int         // main blocks
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
	for _, b := range t.blocks[:last] {
		t.advanceTo(b.Slot)
		made := false
		if t.stays[b.Blockhash] {
			made = t.turns(b)
			t.told++
		}
		moved := t.move(b)
		if t.stays[b.Blockhash] {
			t.ledger.main = append(t.ledger.main, moved)
		}
		if made {
			t.add(event{overturned, twin(moved)})
		}
		t.add(event{produced, moved})
	}
	t.settle()
	t.ledger.Slots = len(t.ledger.steps)
	t.ledger.index()
}

// advanceTo adds steps without anything for the simulator's skipped slots.
func (t *builder) advanceTo(slot ledger.Slot) {
	for n := len(t.ledger.steps); n > 0 && t.ledger.steps[n-1].slot+1 < slot+t.shift; n++ {
		t.ledger.steps = append(t.ledger.steps, step{slot: t.ledger.steps[n-1].slot + 1})
	}
}

// add adds something to what happens in a slot.
func (t *builder) add(e event) {
	if n := len(t.ledger.steps); n > 0 && t.ledger.steps[n-1].slot == e.block.Slot {
		t.ledger.steps[n-1].events = append(t.ledger.steps[n-1].events, e)
		return
	}
	t.ledger.steps = append(t.ledger.steps, step{slot: e.block.Slot, events: []event{e}})
}

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
		parent := t.moved[b.PreviousBlockhash.Value]
		if turn.Before != t.told || parent == nil {
			continue
		}
		switch turn.Kind {
		case Twice:
			twice = true
			continue
		case Fork:
			t.branch(b, parent, turn.Depth)
		case SkippedRun:
			t.shift += ledger.Slot(turn.Depth)
			t.advanceTo(b.Slot)
		case DeadSlot, DeadBlock:
			at := b.Slot + t.shift
			how := failed
			if turn.Kind == DeadBlock {
				how = overturned
			}
			t.add(event{how, astray(b, parent, at, 0)})
			t.shift++
		}
	}
	return twice
}

// branch builds as many blocks on the parent of b, in slots of their own, which b then leaves behind.
func (t *builder) branch(b *ledger.Block, parent *ledger.Block, depth int) {
	on := parent
	for i := range depth {
		wrong := astray(b, on, b.Slot+t.shift, i)
		t.add(event{produced, wrong})
		on = wrong
		t.shift++
	}
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

// settle says when the blocks that stay become confirmed and final, and adds the steps that takes.
func (t *builder) settle() {
	l := t.ledger
	first, last := l.steps[0].slot, l.main[len(l.main)-1].Slot
	for at := l.steps[len(l.steps)-1].slot; at < last+max(t.plan.Finality, confirmLag); {
		at++
		l.steps = append(l.steps, step{slot: at})
	}
	for _, b := range l.main {
		l.steps[b.Slot+confirmLag-first].events = append(l.steps[b.Slot+confirmLag-first].events, event{confirmed, b})
		at := b.Slot + max(t.plan.Finality, confirmLag) - first
		l.steps[at].events = append(l.steps[at].events, event{finalized, b})
	}
	for i := range l.steps {
		slices.SortStableFunc(l.steps[i].events, func(x, y event) int { return cmp.Compare(x.what.claim(), y.what.claim()) })
	}
}
