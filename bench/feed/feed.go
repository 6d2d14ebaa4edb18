package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
)

// baseAccounts is how many accounts go into one event of base state.
const baseAccounts = 50_000

// Feed writes a ledger. One goroutine writes; any may ask what was due when.
type Feed struct {
	config Config
	out    *codec.EventWriter
	writes []ledger.AccountWrite // room for those of a block

	mu      sync.Mutex
	due     []time.Time // by slot from FirstSlot on; of the block that is written now too
	written int         // blocks that are written whole, with the statuses behind them
}

// New writes the beginning of a ledger: the base state and the first block, which has no
// updates. A server is ready when it has read that far.
func New(w io.Writer, c Config) (*Feed, error) {
	if c.Finality == 0 {
		c.Finality = defaultFinality
	}
	if c.Accounts < 1 || c.Updates < 0 || c.Updates > c.Accounts {
		return nil, fmt.Errorf("cannot make up a ledger of %d accounts with %d updates a block", c.Accounts, c.Updates)
	}
	f := &Feed{config: c, writes: make([]ledger.AccountWrite, 0, max(c.Updates, min(c.Accounts, baseAccounts)))}
	var err error
	if f.out, err = codec.NewEventWriter(w); err != nil {
		return nil, fmt.Errorf("cannot begin a feed: %w", err)
	}
	for i := 0; i < c.Accounts; i += baseAccounts {
		base := &ledger.BaseState{Slot: FirstSlot - 1, Accounts: f.writes[:0]}
		for k := i; k < min(i+baseAccounts, c.Accounts); k++ {
			base.Accounts = append(base.Accounts, c.Account(k, FirstSlot-1))
		}
		if err := f.out.Write(base); err != nil {
			return nil, fmt.Errorf("cannot write base state: %w", err)
		}
	}
	_, err = f.write(time.Now())
	return f, err
}

// Config returns what ledger it is.
func (f *Feed) Config() Config { return f.config }

// Newest returns the newest slot that is written whole.
func (f *Feed) Newest() ledger.Slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return FirstSlot + ledger.Slot(f.written) - 1
}

// Due returns when the block of a slot was due, the zero time if it is not known: the slot is
// not of this feed, or not yet.
func (f *Feed) Due(s ledger.Slot) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s < FirstSlot || s-FirstSlot >= ledger.Slot(len(f.due)) {
		return time.Time{}
	}
	return f.due[s-FirstSlot]
}

// Block writes the next block, due now, and the statuses that follow from it. It returns the
// slot.
func (f *Feed) Block() (ledger.Slot, error) { return f.write(time.Now()) }

// Pace writes a block each interval, the first one after one interval, until ctx ends or the
// given number is written. When the reader is slow, blocks are written late, and later ones
// keep their time. That ctx ended is no error.
func (f *Feed) Pace(ctx context.Context, interval time.Duration, blocks int) error {
	next := time.Now()
	for range blocks {
		next = next.Add(interval)
		if wait.Sleep(ctx, time.Until(next)) != nil {
			return nil
		}
		if _, err := f.write(next); err != nil {
			return err
		}
	}
	return nil
}

// write writes the next block. One that could not be written whole is as if it had never been
// tried.
func (f *Feed) write(due time.Time) (ledger.Slot, error) {
	f.mu.Lock()
	f.due = append(f.due[:f.written], due)
	s := FirstSlot + ledger.Slot(f.written)
	f.mu.Unlock()
	if err := f.emit(s); err != nil {
		return s, err
	}
	f.mu.Lock()
	f.written++
	f.mu.Unlock()
	return s, nil
}

// emit writes the block of a slot and what its coming says of those before it.
func (f *Feed) emit(s ledger.Slot) error {
	b := &ledger.Block{
		Slot: s, ParentSlot: s - 1, Blockhash: Blockhash(s), PreviousBlockhash: ledger.Some(Blockhash(s - 1)),
		Time: ledger.Some(f.Due(s).Unix()), Height: ledger.Some(uint64(s)), Accounts: f.writes[:0],
	}
	for index := range f.config.Indexes(s) {
		b.Accounts = append(b.Accounts, f.config.Account(index, s))
	}
	if f.config.Transactions {
		b.TransactionCount = 1
		b.AddTransaction(ledger.Transaction{
			Signature: Signature(s), Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true),
			Accounts: []ledger.Pubkey{Key(int(s) % f.config.Accounts), Program(int(s))},
		})
	}
	err := f.out.Write(b)
	if s > FirstSlot {
		err = errors.Join(err, f.status(s-1, ledger.StatusConfirmed))
	}
	if final := ledger.Slot(f.config.Finality); s >= FirstSlot+final {
		err = errors.Join(err, f.status(s-final, ledger.StatusFinalized))
	}
	if err != nil {
		return fmt.Errorf("cannot write block %d: %w", s, err)
	}
	return nil
}

func (f *Feed) status(s ledger.Slot, status ledger.Status) error {
	return f.out.Write(&ledger.SlotStatus{Slot: s, Status: status, Blockhash: ledger.Some(Blockhash(s))})
}
