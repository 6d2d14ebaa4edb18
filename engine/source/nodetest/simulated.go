package nodetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/sim"
)

// defaultFinality is how many slots after a block it is final, where that is not said.
const defaultFinality = 8

// Simulated returns the ledger of a simulator's parameters, which must name slots; blocks are final so many slots after their own, 0: 8. By
// their hashes blocks off the chain that stays are abandoned, break half-way, or are taken back whole, and the slots of some blocks
// first show another one, which is taken back.
func Simulated(parameters string, finality ledger.Slot) (*Ledger, error) {
	source, err := sim.Open(parameters)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(parameters, "slots=") {
		return nil, fmt.Errorf("a test node needs an end: add slots=N to %q", parameters)
	}
	t := builder{ledger: &Ledger{Base: &ledger.BaseState{}}, stays: make(map[ledger.Hash]bool)}
	if err := source.Run(context.Background(), nil, t.take); err != nil {
		return nil, err
	}
	t.build(max(cmp.Or(finality, defaultFinality), confirmLag))
	return t.ledger, nil
}

// builder makes a ledger of a simulator's run.
type builder struct {
	ledger *Ledger
	blocks []*ledger.Block      // all, as they came
	stays  map[ledger.Hash]bool // blocks that were confirmed
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
		what, chance := produced, b.Blockhash[0]
		switch {
		case t.stays[b.Blockhash]:
			if chance%32 == 0 {
				other := *b
				other.Blockhash = sha256.Sum256(b.Blockhash[:])
				all = append(all, event{overturned, &other})
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
