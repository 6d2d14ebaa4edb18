package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// The events of a made-up ledger as lines of NDJSON (README, "Event lines").
const (
	accountsLine = `{"type":"accounts","slot":%d,"accounts":[`
	statusLine   = `{"type":"slot","slot":%d,"status":"%s","blockhash":"%s"}` + "\n"
	blockLine    = `{"type":"block","slot":%d,"parent_slot":%d,"blockhash":"%s","previous_blockhash":"%s","block_time":%d,"block_height":%d,"transactions":[],"accounts":[`
	accountField = `{"pubkey":"%s","lamports":%d,"owner":"%s","executable":false,"rent_epoch":%d,"token":`
	tokenField   = `{"mint":"%s","owner":"%s","amount":"%d","state":"initialized","delegate":null,"delegated_amount":"0","close_authority":null,"is_native":false}`
)

// writeLines writes the events of an event file as NDJSON. It knows what a made-up ledger says, and no more.
func writeLines(path, eventFile string) (err error) {
	events, err := os.Open(eventFile)
	if err != nil {
		return err
	}
	defer events.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	reader, err := codec.NewEventReader(events)
	if err != nil {
		return err
	}
	lines := bufio.NewWriterSize(file, fileBuffer)
	for {
		e, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(lines.Flush(), file.Sync()) // Flush tells of any error of a write
		}
		if err != nil {
			return fmt.Errorf("cannot write a ledger to %s: %w", path, err)
		}
		writeLine(lines, e)
	}
}

func writeLine(w *bufio.Writer, event ledger.Event) {
	switch e := event.(type) {
	case *ledger.BaseState:
		fmt.Fprintf(w, accountsLine, e.Slot)
		writeAccounts(w, e.Accounts)
	case *ledger.SlotStatus:
		fmt.Fprintf(w, statusLine, e.Slot, e.Status, e.Blockhash.Value)
	case *ledger.Block:
		fmt.Fprintf(w, blockLine, e.Slot, e.ParentSlot, e.Blockhash, e.PreviousBlockhash.Value, e.Time.Value, e.Height.Value)
		writeAccounts(w, e.Accounts)
	default:
		panic(fmt.Sprintf("a made-up ledger has an event of type %T", event))
	}
}

// writeAccounts writes accounts and the end of a line.
func writeAccounts(w *bufio.Writer, accounts []ledger.AccountWrite) {
	for i := range accounts {
		a := &accounts[i]
		if i > 0 {
			_ = w.WriteByte(',')
		}
		fmt.Fprintf(w, accountField, a.Pubkey, a.Lamports, a.Owner, a.RentEpoch)
		if t := a.Token; t != nil {
			fmt.Fprintf(w, tokenField, t.Mint, t.Owner, t.Amount)
		} else {
			_, _ = w.WriteString("false") // it is known to hold none
		}
		_, _ = w.WriteString(`,"mint":false}`)
	}
	_, _ = w.WriteString("]}\n")
}
