package chain_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/shard/txstore"
)

// blockOn returns a block whose hash is its slot and its branch.
func blockOn(parent *ledger.Block, slot ledger.Slot, branch byte) *ledger.Block {
	previous := ledger.Some(parent.Blockhash)
	return &ledger.Block{Slot: slot, ParentSlot: parent.Slot, Blockhash: ledger.Hash{byte(slot), branch}, PreviousBlockhash: previous}
}

// decide replays a log on a new chain and shows it events until one is refused. It returns the branch and the
// slot of the tip, the newest confirmed and the newest finalized block, and the whole log.
func decide(t *testing.T, log []*ledger.Record, events []ledger.Event) (levels string, all []*ledger.Record, err error) {
	seq := sequencer.New(sequencer.Config{ // without shards no record has updates
		Stored: txstore.New(), Retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 30}, Logger: slog.New(slog.DiscardHandler),
	})
	if err := seq.Replay(log); err != nil {
		t.Fatal(err)
	}
	seq.ResumeSource()
	for i := 0; i < len(events) && err == nil; i++ {
		err = seq.Handle(events[i])
	}
	b, sealErr := seq.Seal()
	if sealErr != nil {
		t.Fatal(sealErr)
	}
	c := seq.Chain()
	for _, n := range []*chain.Node{c.Tip, c.Confirmed, c.Finalized} {
		levels += fmt.Sprintf(" %c%d", n.Block.Blockhash[1], n.Slot())
	}
	return levels[1:], b.Records, err
}

// TestForkChoice shows events to a chain. Stopped after any event, restarted from its log and shown all events again, it
// ends the same.
func TestForkChoice(t *testing.T) {
	root := &ledger.Block{Slot: 1, Blockhash: ledger.Hash{1, 'r'}}
	a2, b3 := blockOn(root, 2, 'a'), blockOn(root, 3, 'b')
	a4, b4, c4 := blockOn(a2, 4, 'a'), blockOn(b3, 4, 'b'), blockOn(a2, 4, 'c')
	b5, c5 := blockOn(b4, 5, 'b'), blockOn(a2, 5, 'c')
	high := blockOn(root, 60, 'd')
	status := func(b *ledger.Block, s ledger.Status) ledger.Event {
		return &ledger.SlotStatus{Slot: b.Slot, Status: s, Blockhash: ledger.Some(b.Blockhash)}
	}
	confirmed := func(b *ledger.Block) ledger.Event { return status(b, ledger.StatusConfirmed) }
	final := func(b *ledger.Block) ledger.Event { return status(b, ledger.StatusFinalized) }
	dead := func(b *ledger.Block) ledger.Event { return status(b, ledger.StatusDead) }
	long := []ledger.Event{a2} // slots 2 to 34
	for b := a2; len(long) <= chain.MaxRollbackBlocks; {
		b = blockOn(b, b.Slot+1, 'a')
		long = append(long, b)
	}
	tests := map[string]struct {
		events  []ledger.Event
		want    string
		refused bool // the last event
	}{
		"the higher slot wins":                     {[]ledger.Event{a2, b3}, "b3 r1 r1", false},
		"the lower slot does not":                  {[]ledger.Event{b3, a2}, "b3 r1 r1", false},
		"an equal slot does not":                   {[]ledger.Event{b4, a2, a4, b3}, "a4 r1 r1", false},
		"confirmed beats processed":                {[]ledger.Event{b3, b4, a2, confirmed(a2)}, "a2 a2 r1", false},
		"a higher slot beside the confirmed block": {[]ledger.Event{a2, confirmed(a2), b3, b4}, "a2 a2 r1", false},
		"the confirmed block's best descendant":    {[]ledger.Event{b3, a2, a4, c5, confirmed(a2)}, "c5 a2 r1", false},
		"the lower hash of the best descendants":   {[]ledger.Event{b3, b4, a2, c4, a4, confirmed(a2)}, "a4 a2 r1", false},
		"the order of arrival":                     {[]ledger.Event{a4, b5, b4, b3, a2}, "b5 r1 r1", false},
		"finalized is never undone":                {[]ledger.Event{a2, b3, b4, final(a2), b5}, "a2 a2 a2", false},
		"finalized is never dead":                  {[]ledger.Event{a2, final(a2), dead(a2)}, "a2 a2 a2", true},
		"finalized beats confirmed":                {[]ledger.Event{b3, confirmed(b3), a2, a4, final(a2)}, "a4 a2 a2", false},
		"a dead tip":                               {[]ledger.Event{a2, a4, dead(a4), a4}, "a2 r1 r1", false},
		"a dead tip beside a lower block":          {[]ledger.Event{a2, a4, c5, dead(c5)}, "a4 r1 r1", false},
		"a dead confirmed block":                   {[]ledger.Event{a2, confirmed(a2), b3, dead(a2)}, "b3 r1 r1", false},
		"a dead block above the confirmed one":     {[]ledger.Event{a2, confirmed(a2), a4, b5, dead(a4)}, "a2 a2 r1", false},
		"children of a dead block":                 {[]ledger.Event{b3, a2, dead(b3), b4, b5}, "a2 r1 r1", false},
		"a dead block whose child is confirmed":    {[]ledger.Event{b3, dead(b3), b4, confirmed(b4), b5}, "b5 b4 r1", false},
		"a block that is dead while it waits":      {[]ledger.Event{b4, dead(b4), b3}, "b3 r1 r1", false},
		"a block that is confirmed while it waits": {[]ledger.Event{a2, b4, confirmed(b4), c5, b3}, "b4 b4 r1", false},
		"32 blocks are undone":                     {append(slices.Clone(long[:32]), high), "d60 r1 r1", false},
		"33 blocks would be undone":                {append(slices.Clone(long), high), "a34 r1 r1", true},
		"33 blocks would be undone by a status":    {append(slices.Clone(long), b3, confirmed(b3)), "a34 r1 r1", true},
	}
	for name, tt := range tests {
		events := append([]ledger.Event{root}, tt.events...)
		for stop := range len(events) {
			_, log, err := decide(t, nil, events[:stop+1])
			if stop < len(events)-1 && err != nil {
				t.Fatalf("%s: event %d: %v", name, stop, err)
			}
			got, _, err := decide(t, log, events)
			var refused *chain.RefusedError
			if got != tt.want || errors.As(err, &refused) != tt.refused || err != nil && !tt.refused {
				t.Errorf("%s, stopped after event %d: %s, %v; want %s, refused %v", name, stop, got, err, tt.want, tt.refused)
			}
		}
	}
}

// TestBlocksBesideTheFinalizedOne: a block on an orphan of the finalized slot, and one on that, can never join the tree. One
// on a block that was never shown waits: to pass over it in silence would hide that two ledgers were mixed up.
func TestBlocksBesideTheFinalizedOne(t *testing.T) {
	root := &ledger.Block{Slot: 1, Blockhash: ledger.Hash{1, 'r'}}
	final, orphan := blockOn(root, 2, 'a'), blockOn(root, 2, 'b')
	c := chain.New()
	c.Appended(c.Begin(root), 1)
	for _, b := range []*ledger.Block{final, orphan} {
		if _, placed, err := c.Place(b); placed != chain.Placed || err != nil {
			t.Fatalf("block %d: placed %v, %v", b.Slot, placed, err)
		}
	}
	n := c.Node(ledger.BlockID{Slot: 2, Hash: final.Blockhash})
	c.Appended(n, 2)
	c.Finalize(n)
	late := blockOn(orphan, 3, 'b')
	unknown := blockOn(&ledger.Block{Slot: 2, Blockhash: ledger.Hash{2, 'u'}}, 3, 'u')
	for want, blocks := range map[chain.Placement][]*ledger.Block{chain.Orphaned: {late, blockOn(late, 4, 'b')}, chain.Waits: {unknown}} {
		for _, b := range blocks {
			if _, placed, err := c.Place(b); placed != want || err != nil {
				t.Errorf("block %d: placed %v, %v, want %v", b.Slot, placed, err, want)
			}
		}
	}
}
