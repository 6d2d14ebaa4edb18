package yellowstone

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

func key(n byte) ledger.Pubkey { return ledger.Pubkey{n, 0xff, n} }

func accountOf(slot ledger.Slot, w ledger.AccountWrite, version uint64) Update {
	return Update{Kind: Account, Slot: slot, Write: w, WriteVersion: version}
}

func statusOf(slot ledger.Slot, s SlotStatus) Update {
	return Update{Kind: Slot, Slot: slot, Status: s}
}

func headOf(slot ledger.Slot, h Head) Update { return Update{Kind: Meta, Slot: slot, Head: h} }

// bank numbers the try of a slot that an update is about.
func (u Update) bank(id uint64) Update {
	u.Bank = id
	return u
}

func discard(context.Context, ledger.Event) error { return nil }

// collector takes events.
type collector struct{ events []ledger.Event }

func (c *collector) emit(_ context.Context, e ledger.Event) error {
	c.events = append(c.events, e)
	return nil
}

// newCollected returns an assembler of blocks with transactions, and who takes its events.
func newCollected(live bool) (*Assembler, *collector) {
	c := new(collector)
	a := NewAssembler(c.emit)
	a.HasTransactions, a.Live = true, live
	return a, c
}

func feed(t *testing.T, a *Assembler, updates ...Update) error {
	t.Helper()
	for _, u := range updates {
		if err := a.Take(t.Context(), &u); err != nil {
			return err
		}
	}
	return nil
}

func mustFeed(t *testing.T, a *Assembler, updates ...Update) {
	t.Helper()
	if err := feed(t, a, updates...); err != nil {
		t.Fatal(err)
	}
}

// outline tells events in short.
func (c *collector) outline() (lines []string) {
	for _, e := range c.events {
		switch e := e.(type) {
		case *ledger.Block:
			lines = append(lines, fmt.Sprintf("block %d.%d of %d/%d", e.Slot, e.Blockhash[1], len(e.Transactions), e.TransactionCount))
		case *ledger.SlotStatus:
			lines = append(lines, fmt.Sprintf("%s %d known %v", e.Status, e.Slot, e.Blockhash.Known))
		case *ledger.BaseState:
			lines = append(lines, fmt.Sprintf("base %d of %d", e.Slot, len(e.Accounts)))
		}
	}
	return lines
}

func (c *collector) check(t *testing.T, want ...string) {
	t.Helper()
	if got := c.outline(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
