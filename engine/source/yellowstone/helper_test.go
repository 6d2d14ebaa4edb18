package yellowstone

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func key(n byte) ledger.Pubkey { return ledger.Pubkey{n, 0xff, n} }

func hashAt(slot ledger.Slot, fork byte) ledger.Hash { return ledger.Hash{byte(slot), fork} }

func accountOf(slot ledger.Slot, w ledger.AccountWrite, version uint64) Update {
	return Update{Kind: Account, Slot: slot, Write: w, WriteVersion: version}
}

func statusOf(slot ledger.Slot, s SlotStatus) Update {
	return Update{Kind: Slot, Slot: slot, Status: s}
}

func headOf(slot ledger.Slot, h Head) Update { return Update{Kind: Meta, Slot: slot, Head: h} }

var must = ledgertest.Must

func discard(context.Context, ledger.Event) error { return nil }

// collector takes events of an assembler, and why it refused an update.
type collector struct {
	events []ledger.Event
	err    error
}

func (c *collector) emit(_ context.Context, e ledger.Event) error {
	c.events = append(c.events, e)
	return nil
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
	must(t, feed(t, a, updates...))
}

// statuses are the words for them, in their order.
var statuses = []string{"processed", "confirmed", "finalized", "shred", "completed", "begin", "dead", "unknown"}

// words are parts of blocks 100 and 101, which have two transactions each, and of others.
var words = func() map[string][]Update {
	r := rand.New(rand.NewPCG(1, 1))
	b, next := aBlock(r, 100, 2), aBlock(r, 101, 2)
	other, bare := b.head, b.head
	other.Hash[1], bare.Transactions = 2, 0
	zero, nine := ledger.Hash{1}, ledger.Hash{2}
	return map[string][]Update{
		"write": b.updates[:1], "last": b.updates[3:4], "writes": b.updates[:4],
		"one": b.updates[4:5], "two": b.updates[5:6], "head": {headOf(100, b.head)},
		"other": {headOf(100, other)}, // another block there
		"bare":  {headOf(100, bare)},  // a block without transactions
		"part":  {headOf(100, Head{Hash: hashAt(100, 0), ParentSlot: 99}), statusOf(100, Processed)},
		"some":  next.updates[:5], "next": append(next.updates, headOf(101, next.head)), "after": {headOf(101, next.head)},
		"vote":   {{Kind: TransactionStatus, Slot: 100, Transaction: ledger.Transaction{Index: 1}}}, // in the place of "two"
		"itself": {headOf(0, Head{Hash: zero})},                                                     // its own parent
		"each-other": {
			headOf(0, Head{Hash: zero, ParentSlot: 9, ParentHash: ledger.Some(nine)}),
			headOf(9, Head{Hash: nine, ParentHash: ledger.Some(zero)}),
		},
	}
}()

// tell tells an assembler of blocks with transactions the words of a script, until it refuses one. A status is of slot 100,
// or has "@SLOT"; "#BANK" numbers a try. "101<99=77" is a block on block 99, up to its being processed, that writes account
// 77, or 1 without "=77"; with ".3" after that it is another one at its slot. "late77=5:11" writes account 77 at slot 100, with
// 5 lamports and version 11, and so does "late"; it has "@SLOT", too. "fill101<100=77" is a block that a Filler shows. "again" begins another stream, "live" says that there is one, "alone" that
// blocks come without transactions, and "filtered" that they do without most writes.
func tell(t *testing.T, script string) (*Assembler, *collector) {
	t.Helper()
	c := new(collector)
	a := NewAssembler(c.emit)
	a.HasTransactions = true
	for n, word := range strings.Fields(script) {
		word, bank, _ := strings.Cut(word, "#")
		what, at, _ := strings.Cut(word, "@")
		updates, isPart := words[what]
		status := slices.Index(statuses, what)
		slot, parent, k, fork := ledger.Slot(100), ledger.Slot(0), byte(1), byte(0)
		named, _ := fmt.Sscanf(word, "%d<%d=%d.%d", &slot, &parent, &k, &fork)
		_, _ = fmt.Sscan(at, &slot)
		switch {
		case word == "again":
			a.Reconnected()
		case word == "live":
			a.Live = true
		case word == "alone":
			a.HasTransactions = false
		case word == "filtered":
			a.Filtered = true
		case status >= 0:
			updates = []Update{statusOf(slot, SlotStatus(status))}
		case strings.HasPrefix(word, "fill"):
			_, _ = fmt.Sscanf(word, "fill%d<%d=%d", &slot, &parent, &k)
			b := &ledger.Block{Slot: slot, ParentSlot: parent, Blockhash: hashAt(slot, 0), PreviousBlockhash: ledger.Some(hashAt(parent, 0))}
			b.Accounts = []ledger.AccountWrite{{Pubkey: key(k), Lamports: ledger.Lamports(slot)}}
			must(t, a.Fill(t.Context(), b))
		case named >= 2:
			updates = []Update{
				statusOf(slot, CreatedBank),
				accountOf(slot, ledger.AccountWrite{Pubkey: key(k), Lamports: ledger.Lamports(slot)}, uint64(10*n)),
				headOf(slot, Head{Hash: hashAt(slot, fork), ParentSlot: parent, ParentHash: ledger.Some(hashAt(parent, 0))}),
				statusOf(slot, Processed),
			}
		case strings.HasPrefix(word, "late"):
			k, lamports, version := byte(77), ledger.Lamports(5), uint64(11)
			_, _ = fmt.Sscanf(word, "late%d=%d:%d", &k, &lamports, &version)
			updates = []Update{accountOf(slot, ledger.AccountWrite{Pubkey: key(k), Lamports: lamports}, version)}
		case !isPart:
			t.Fatalf("%q says nothing", word)
		}
		for _, u := range updates {
			_, _ = fmt.Sscan(bank, &u.Bank)
			if c.err = a.Take(t.Context(), &u); c.err != nil {
				return a, c
			}
		}
	}
	return a, c
}

// outline tells events in short: of a block its slot and fork, its transactions, and the accounts that it writes with their
// lamports.
func (c *collector) outline() (lines []string) {
	for _, e := range c.events {
		switch e := e.(type) {
		case *ledger.Block:
			line := fmt.Sprint(e.Slot)
			if e.Blockhash[1] > 0 {
				line += fmt.Sprintf(".%d", e.Blockhash[1])
			}
			if e.TransactionCount > 0 {
				line += fmt.Sprintf(" of %d/%d", len(e.Transactions), e.TransactionCount)
			}
			slices.SortStableFunc(e.Accounts, func(x, y ledger.AccountWrite) int { return x.Pubkey.Compare(&y.Pubkey) })
			for _, w := range e.Accounts {
				line += fmt.Sprintf(" %d=%d", w.Pubkey[0], w.Lamports)
			}
			lines = append(lines, line)
		case *ledger.SlotStatus:
			line := fmt.Sprintf("%s %d", e.Status, e.Slot)
			if fork := e.Blockhash.Value[1]; fork > 1 {
				line += fmt.Sprintf(".%d", fork)
			}
			lines = append(lines, fmt.Sprintf("%s known %v", line, e.Blockhash.Known))
		}
	}
	return lines
}
