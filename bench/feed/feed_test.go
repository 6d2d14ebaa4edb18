package feed

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// read returns the events of an event file.
func read(t *testing.T, r io.Reader) (events []ledger.Event) {
	t.Helper()
	in, err := codec.NewEventReader(r)
	must(t, err)
	for {
		e, err := in.Read()
		if err == io.EOF {
			return events
		}
		must(t, err)
		events = append(events, e)
	}
}

func TestEventsAreTheLedgerThatIsSaid(t *testing.T) {
	for _, c := range []Config{{Accounts: 10, Updates: 4, Finality: 3, Tokens: 30}, {Accounts: 5, Updates: 5, Finality: 1}, {Accounts: 120_000}} {
		const blocks = 12
		var file bytes.Buffer
		f, err := New(&file, c)
		must(t, err)
		for i := range ledger.Slot(blocks) {
			if s, err := f.Block(); s != FirstSlot+1+i || err != nil || f.Newest() != s {
				t.Fatalf("block %d: slot %d, %v; the newest is %d", i, s, err, f.Newest())
			}
		}
		c = f.Config() // with defaults
		known, updates := make(map[ledger.Pubkey]int), make(map[int]int)
		next := FirstSlot
		var confirmed, finalized ledger.Slot
		for _, e := range read(t, &file) {
			switch e := e.(type) {
			case *ledger.BaseState:
				for _, a := range e.Accounts {
					if e.Slot != FirstSlot-1 || len(a.Pubkey.String()) != 44 || !reflect.DeepEqual(a, c.Account(len(known), e.Slot)) {
						t.Errorf("%+v: base state at slot %d has %+v as number %d", c, e.Slot, a, len(known))
					}
					known[a.Pubkey] = len(known)
				}
			case *ledger.Block:
				for i := range checkBlock(t, c, e, next, known) {
					updates[i]++
				}
				next++
			case *ledger.SlotStatus:
				ledgertest.Equal(t, e.Blockhash, ledger.Some(Blockhash(e.Slot)), "%+v: the block that the status of slot %d names", c, e.Slot)
				if e.Status == ledger.StatusConfirmed {
					confirmed = e.Slot
				} else {
					finalized = e.Slot
				}
			}
		}
		ledgertest.Equal(t, len(known), c.Accounts, "%+v: accounts", c)
		ledgertest.Equal(t, next, FirstSlot+blocks+1, "%+v: the slot behind the last block", c)
		for i := range min(c.Accounts, 100) + 10 { // of accounts that do not exist, too
			ledgertest.Equal(t, c.Of(i, FirstSlot, f.Newest()), updates[i], "%+v: updates of account %d", c, i)
		}
		wantFinal := max(f.Newest()-ledger.Slot(c.Finality), FirstSlot)
		if c.Finality > blocks {
			wantFinal = 0
		}
		ledgertest.Equal(t, confirmed, f.Newest()-1, "%+v: the confirmed slot", c)
		ledgertest.Equal(t, finalized, wantFinal, "%+v: the finalized slot, at slot %d", c, f.Newest())
	}
}

// checkBlock returns which accounts a block updates.
func checkBlock(t *testing.T, c Config, b *ledger.Block, want ledger.Slot, known map[ledger.Pubkey]int) (updated map[int]bool) {
	t.Helper()
	if b.Slot != want || b.ParentSlot != want-1 || b.Blockhash != Blockhash(want) || b.PreviousBlockhash.Value != Blockhash(want-1) {
		t.Errorf("%+v: instead of block %d comes %d on %d", c, want, b.Slot, b.ParentSlot)
	}
	updated = make(map[int]bool)
	for _, a := range b.Accounts {
		i, ok := known[a.Pubkey]
		if !ok || updated[i] || !reflect.DeepEqual(a, c.Account(i, b.Slot)) {
			t.Errorf("%+v: block %d updates %+v", c, b.Slot, a)
		}
		updated[i] = true
	}
	for i := range min(c.Accounts, 100) {
		ledgertest.Equal(t, c.Has(b.Slot, i), updated[i], "%+v: Has(%d, %d)", c, b.Slot, i)
	}
	if wanted := c.Updates; b.Slot > FirstSlot && len(updated) != wanted {
		t.Errorf("%+v: block %d updates %d accounts", c, b.Slot, len(updated))
	}
	return updated
}

func TestBlocksAreDueByTheClockAloneUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowWriter{}
		f, err := New(slow, Config{Accounts: 10, Updates: 1})
		must(t, err)
		slow.takes = 3 * time.Second // for one block and a status of the first five
		start := time.Now()
		err = f.Pace(t.Context(), time.Second, 20)
		newest := f.Newest()
		if err != nil || newest != FirstSlot+20 {
			t.Fatal(newest, err)
		}
		for i := range 20 {
			ledgertest.Equal(t, f.Due(FirstSlot+1+ledger.Slot(i)).Sub(start), time.Duration(i+1)*time.Second, "block %d was due after", i)
		}
		if got := f.Due(newest + 1); !got.IsZero() {
			t.Errorf("what is not written is due at %v", got)
		}
		if got := f.Due(FirstSlot - 1); !got.IsZero() {
			t.Errorf("what is before the first is due at %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		if err := f.Pace(ctx, time.Second, 100); f.Newest() != newest+3 || err != nil {
			t.Errorf("with a context that ends, block %d after %d, %v", f.Newest(), newest, err)
		}
	})
}

// slowWriter takes its time for the first ten writes after that was set.
type slowWriter struct {
	takes  time.Duration
	writes int
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if w.takes > 0 && w.writes < 10 {
		w.writes++
		time.Sleep(w.takes)
	}
	return len(p), nil
}

func TestReaderThatIsGoneIsAnError(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	_, err := New(w, Config{Accounts: 1})
	ledgertest.ErrorIs(t, err, io.ErrClosedPipe, "New")
	for _, c := range []Config{{}, {Accounts: 1, Updates: 2}, {Accounts: 1, Updates: -1}} {
		if _, err := New(io.Discard, c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
