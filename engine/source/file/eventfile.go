package file

import (
	"context"
	"errors"
	"io"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// readEventFile emits the events of a binary event file. An error names the event, counted
// from 1, and the byte where the file is damaged.
func readEventFile(ctx context.Context, r io.Reader, out *sink) error {
	events, err := codec.NewEventReader(r)
	if err != nil {
		return err
	}
	return out.putEach(ctx, "event", 1, func() (ledger.Event, error) {
		e, err := events.Read()
		if b, ok := e.(*ledger.Block); ok && err == nil {
			err = checkBlock(b)
		}
		return e, err
	})
}

// checkBlock refuses what an event line could not say either.
func checkBlock(b *ledger.Block) error {
	if err := checkSlotOrder(b.Slot, b.ParentSlot); err != nil {
		return err
	}
	if b.TransactionCount < uint64(len(b.Transactions)) {
		return errors.New("transaction_count is below the number of transactions")
	}
	return nil
}
