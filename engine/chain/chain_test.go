package chain_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
)

// blockOn returns a block whose hash is its slot and its branch.
func blockOn(parent *ledger.Block, slot ledger.Slot, branch byte) *ledger.Block {
	return &ledger.Block{Slot: slot, ParentSlot: parent.Slot, Blockhash: ledger.Hash{byte(slot), branch}, PreviousBlockhash: ledger.Some(parent.Blockhash)}
}

// levels are the slots of the tip, the newest confirmed and the newest finalized block.
type levels struct{ tip, confirmed, final ledger.Slot }

// decide replays a log on a chain with one shard, shows it events, and returns its levels, the whole log and the last error.
func decide(t *testing.T, log []*ledger.Record, events []ledger.Event) (levels, []*ledger.Record, error) {
	s := shard.New(0, 1)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	defer running.Wait()
	defer stop()
	seq := sequencer.New(sequencer.Config{
		Shards: []*shard.Shard{s}, Stored: txstore.New(), Retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 30},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err := seq.Replay(log); err != nil {
		t.Fatal(err)
	}
	seq.ResumeSource()
	var err error
	for i := 0; i < len(events) && err == nil; i++ {
		err = seq.Handle(events[i])
	}
	b, sealErr := seq.Seal()
	if sealErr != nil {
		t.Fatal(sealErr)
	}
	c := seq.Chain()
	return levels{c.Tip.Slot(), c.Confirmed.Slot(), c.Finalized.Slot()}, b.Records, err
}

// TestForkChoice shows events to a chain. Stopped after any event, restarted from its log and shown all events again, it
// ends the same.
func TestForkChoice(t *testing.T) {
	root := &ledger.Block{Slot: 1, Blockhash: ledger.Hash{1}}
	a2, b3 := blockOn(root, 2, 'a'), blockOn(root, 3, 'b')
	a4, b4 := blockOn(a2, 4, 'a'), blockOn(b3, 4, 'b')
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
		want    levels
		refused bool // the last event
	}{
		"the higher slot wins":                       {[]ledger.Event{a2, b3}, levels{3, 1, 1}, false},
		"the lower slot does not":                    {[]ledger.Event{b3, a2}, levels{3, 1, 1}, false},
		"confirmed beats processed":                  {[]ledger.Event{b3, b4, a2, confirmed(a2)}, levels{2, 2, 1}, false},
		"a higher slot beside the confirmed block":   {[]ledger.Event{a2, confirmed(a2), b3, b4}, levels{2, 2, 1}, false},
		"the best descendant of the confirmed block": {[]ledger.Event{b3, a2, a4, c5, confirmed(a2)}, levels{5, 2, 1}, false},
		"the order of arrival":                       {[]ledger.Event{a4, b5, b4, b3, a2}, levels{5, 1, 1}, false},
		"finalized is never undone":                  {[]ledger.Event{a2, b3, b4, final(a2), b5}, levels{2, 2, 2}, false},
		"finalized is never dead":                    {[]ledger.Event{a2, final(a2), dead(a2)}, levels{2, 2, 2}, true},
		"finalized beats confirmed":                  {[]ledger.Event{b3, confirmed(b3), a2, a4, final(a2)}, levels{4, 2, 2}, false},
		"a dead tip":                                 {[]ledger.Event{a2, a4, dead(a4), a4}, levels{2, 1, 1}, false},
		"a dead tip beside a lower block":            {[]ledger.Event{a2, a4, c5, dead(c5)}, levels{4, 1, 1}, false},
		"a dead confirmed block":                     {[]ledger.Event{a2, confirmed(a2), b3, dead(a2)}, levels{3, 1, 1}, false},
		"a dead block above the confirmed one":       {[]ledger.Event{a2, confirmed(a2), a4, b5, dead(a4)}, levels{2, 2, 1}, false},
		"children of a dead block":                   {[]ledger.Event{b3, a2, dead(b3), b4, b5}, levels{2, 1, 1}, false},
		"a dead block whose child is confirmed":      {[]ledger.Event{b3, dead(b3), b4, confirmed(b4), b5}, levels{5, 4, 1}, false},
		"a block that is dead while it waits":        {[]ledger.Event{b4, dead(b4), b3}, levels{3, 1, 1}, false},
		"a block that is confirmed while it waits":   {[]ledger.Event{a2, b4, confirmed(b4), c5, b3}, levels{4, 4, 1}, false},
		"32 blocks are undone":                       {append(slices.Clone(long[:32]), high), levels{60, 1, 1}, false},
		"33 blocks would be undone":                  {append(slices.Clone(long), high), levels{34, 1, 1}, true},
		"33 blocks would be undone by a status":      {append(slices.Clone(long), b3, confirmed(b3)), levels{34, 1, 1}, true},
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
				t.Errorf("%s, stopped after event %d: %+v, %v; want %+v, refused %v", name, stop, got, err, tt.want, tt.refused)
			}
		}
	}
}
