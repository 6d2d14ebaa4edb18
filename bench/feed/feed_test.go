package feed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// A block is confirmed by the next one, and final so many blocks later.
func TestBlocksBecomeFinal(t *testing.T) {
	var file bytes.Buffer
	f, err := New(&file, Config{Accounts: 5, Updates: 5, Finality: 2})
	must(t, err)
	for range 3 {
		_, err := f.Block()
		must(t, err)
	}
	in, err := codec.NewEventReader(&file)
	must(t, err)
	told := ""
	for e, err := in.Read(); err != io.EOF; e, err = in.Read() {
		must(t, err)
		switch e := e.(type) {
		case *ledger.Block:
			told += fmt.Sprintf("%d on %d, ", e.Slot-FirstSlot, e.ParentSlot+1-FirstSlot)
		case *ledger.SlotStatus:
			told += fmt.Sprintf("%d %s, ", e.Slot-FirstSlot, e.Status)
		}
	}
	ledgertest.Equal(t, told, "0 on 0, 1 on 1, 0 confirmed, 2 on 2, 1 confirmed, 0 finalized, 3 on 3, 2 confirmed, 1 finalized, ", "what is told")
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
