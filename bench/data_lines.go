package bench

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// writeLines writes the events of an event file as lines of JSON, which servers read as well.
// It knows what a made-up ledger says, and no more.
func writeLines(w io.Writer, eventFile io.Reader) error {
	events, err := codec.NewEventReader(eventFile)
	if err != nil {
		return err
	}
	var line []byte
	for {
		e, err := events.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			line, err = appendLine(line[:0], e)
		}
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			return err
		}
	}
}

func appendLine(dst []byte, e ledger.Event) ([]byte, error) {
	switch e := e.(type) {
	case *ledger.BaseState:
		dst = number(append(dst, `{"type":"accounts"`...), "slot", uint64(e.Slot))
		return appendLineAccounts(dst, e.Accounts), nil
	case *ledger.Block:
		dst = number(append(dst, `{"type":"block"`...), "slot", uint64(e.Slot))
		dst = number(dst, "parent_slot", uint64(e.ParentSlot))
		dst = text(dst, "blockhash", (*ledger.Pubkey)(&e.Blockhash))
		dst = text(dst, "previous_blockhash", (*ledger.Pubkey)(&e.PreviousBlockhash.Value))
		dst = number(dst, "block_time", uint64(e.Time.Value))
		dst = number(dst, "block_height", e.Height.Value)
		return appendLineAccounts(append(dst, `,"transactions":[]`...), e.Accounts), nil
	case *ledger.SlotStatus:
		dst = number(append(dst, `{"type":"slot"`...), "slot", uint64(e.Slot))
		dst = append(append(append(dst, `,"status":"`...), e.Status.String()...), '"')
		return append(text(dst, "blockhash", (*ledger.Pubkey)(&e.Blockhash.Value)), "}\n"...), nil
	default:
		return nil, fmt.Errorf("no line is known for an event of type %T", e)
	}
}

func appendLineAccounts(dst []byte, accounts []ledger.AccountWrite) []byte {
	dst = append(dst, `,"accounts":[`...)
	for i := range accounts {
		a := &accounts[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(a.Pubkey.AppendBase58(append(dst, `{"pubkey":"`...)), '"')
		dst = text(number(dst, "lamports", uint64(a.Lamports)), "owner", &a.Owner)
		dst = number(append(dst, `,"executable":false`...), "rent_epoch", a.RentEpoch)
		dst = append(appendLineToken(dst, a.Token), `,"mint":false}`...)
	}
	return append(dst, "]}\n"...)
}

func appendLineToken(dst []byte, t *ledger.TokenAccount) []byte {
	if t == nil {
		return append(dst, `,"token":false`...)
	}
	dst = append(t.Mint.AppendBase58(append(dst, `,"token":{"mint":"`...)), '"')
	dst = append(text(dst, "owner", &t.Owner), `,"amount":"`...)
	dst = strconv.AppendUint(dst, t.Amount, 10)
	return append(dst, `","state":"initialized","delegate":null,"delegated_amount":"0","close_authority":null,"is_native":false}`...)
}

// number appends a field behind another one.
func number(dst []byte, name string, n uint64) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return strconv.AppendUint(dst, n, 10)
}

// text appends a field of 32 bytes behind another one.
func text(dst []byte, name string, k *ledger.Pubkey) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":"`...)
	return append(k.AppendBase58(dst), '"')
}
