package file

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// readEventFile emits the events of a binary event file. An error names the event, counted
// from 1, or the byte where the file is damaged.
func readEventFile(ctx context.Context, r io.Reader, out *sink) error {
	events, err := codec.NewEventReader(r)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		e, err := events.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if b, ok := e.(*ledger.Block); ok {
			if err := checkBlock(b); err != nil {
				return fmt.Errorf("event %d: %w", n, err)
			}
		}
		if err := out.put(ctx, e); err != nil {
			return err
		}
	}
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
