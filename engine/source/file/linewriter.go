package file

import (
	"fmt"
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// MaxLineBytes bounds one event line, its newline included: a reader refuses a longer one.
// A line of base state stays far below it with 4096 accounts, which is also as many as a
// reader makes one event of; dividing larger base state is up to the caller.
const MaxLineBytes = maxLineBytes

// AppendEventLine appends the event as one line of our own NDJSON, newline included. Reading
// the line gives the event again: numbers are exact, and what the event marks as unknown is
// left out, so that it stays unknown. Accounts carry their facts, never data.
//
// Three things are not said, as they mean nothing in an event: who taught a mint's facts,
// the wallet of a token balance that marks it as unknown, and a previous hash of zeros,
// which readers take for unknown.
func AppendEventLine(dst []byte, e ledger.Event) []byte {
	switch e := e.(type) {
	case *ledger.Block:
		dst = appendBlockLine(dst, e)
	case *ledger.BaseState:
		dst = append(dst, `{"type":"accounts","slot":`...)
		dst = strconv.AppendUint(dst, uint64(e.Slot), 10)
		dst = appendLineAccounts(dst, e.Accounts, e.Mints)
	case *ledger.SlotStatus:
		dst = append(dst, `{"type":"slot","slot":`...)
		dst = strconv.AppendUint(dst, uint64(e.Slot), 10)
		dst = append(dst, `,"status":"`...)
		dst = append(dst, e.Status.String()...)
		dst = append(dst, '"')
		if e.Blockhash.Known {
			dst = appendHashField(dst, `,"blockhash":"`, &e.Blockhash.Value)
		}
	default:
		panic(fmt.Sprintf("no event line for event type %T", e))
	}
	return append(dst, "}\n"...)
}

func appendBlockLine(dst []byte, b *ledger.Block) []byte {
	dst = append(dst, `{"type":"block","slot":`...)
	dst = strconv.AppendUint(dst, uint64(b.Slot), 10)
	dst = append(dst, `,"parent_slot":`...)
	dst = strconv.AppendUint(dst, uint64(b.ParentSlot), 10)
	dst = appendHashField(dst, `,"blockhash":"`, &b.Blockhash)
	if b.PreviousBlockhash.Known {
		dst = appendHashField(dst, `,"previous_blockhash":"`, &b.PreviousBlockhash.Value)
	}
	if b.Time.Known {
		dst = append(dst, `,"block_time":`...)
		dst = strconv.AppendInt(dst, b.Time.Value, 10)
	}
	if b.Height.Known {
		dst = append(dst, `,"block_height":`...)
		dst = strconv.AppendUint(dst, b.Height.Value, 10)
	}
	if b.Status != ledger.Processed {
		dst = append(dst, `,"commitment":"`...)
		dst = append(dst, b.Status.String()...)
		dst = append(dst, '"')
	}
	if b.TransactionCount != uint64(len(b.Transactions)) {
		dst = append(dst, `,"transaction_count":`...)
		dst = strconv.AppendUint(dst, b.TransactionCount, 10)
	}
	dst = append(dst, `,"transactions":[`...)
	for i := range b.Transactions {
		dst = appendLineTransaction(comma(dst, i), &b.Transactions[i])
	}
	dst = append(dst, ']')
	return appendLineAccounts(dst, b.Accounts, b.Mints)
}

func appendLineTransaction(dst []byte, t *ledger.Transaction) []byte {
	dst = append(dst, `{"signature":"`...)
	dst = t.Signature.AppendBase58(dst)
	dst = append(dst, '"')
	if t.Success.Known {
		dst = append(dst, `,"success":`...)
		dst = strconv.AppendBool(dst, t.Success.Value)
	}
	if t.Fee.Known {
		dst = append(dst, `,"fee":`...)
		dst = strconv.AppendUint(dst, uint64(t.Fee.Value), 10)
	}
	dst = append(dst, `,"accounts":[`...)
	for i := range t.Accounts {
		dst = append(comma(dst, i), '"')
		dst = t.Accounts[i].AppendBase58(dst)
		dst = append(dst, '"')
	}
	return append(dst, "]}"...)
}

// appendLineAccounts appends the writes, and behind them, without lamports, the mint facts
// that stand apart from any account.
func appendLineAccounts(dst []byte, accounts []ledger.AccountWrite, mints []ledger.MintWrite) []byte {
	dst = append(dst, `,"accounts":[`...)
	for i := range accounts {
		dst = AppendAccount(comma(dst, i), &accounts[i])
	}
	for i := range mints {
		dst = append(comma(dst, len(accounts)+i), `{"pubkey":"`...)
		dst = mints[i].Pubkey.AppendBase58(dst)
		dst = append(dst, `","mint":`...)
		dst = append(appendMintFacts(dst, &mints[i].Mint), '}')
	}
	return append(dst, ']')
}

// AppendAccount appends a write as event lines show it: what it does not know is left out.
func AppendAccount(dst []byte, w *ledger.AccountWrite) []byte {
	dst = append(dst, `{"pubkey":"`...)
	dst = w.Pubkey.AppendBase58(dst)
	dst = append(dst, `","lamports":`...)
	dst = strconv.AppendUint(dst, uint64(w.Lamports), 10)
	if w.Known&ledger.FieldOwner != 0 {
		dst = appendKeyField(dst, `,"owner":"`, &w.Owner)
	}
	if w.Known&ledger.FieldExecutable != 0 {
		dst = append(dst, `,"executable":`...)
		dst = strconv.AppendBool(dst, w.Executable)
	}
	if w.Known&ledger.FieldRentEpoch != 0 {
		dst = append(dst, `,"rent_epoch":`...)
		dst = strconv.AppendUint(dst, w.RentEpoch, 10)
	}
	if w.Known&ledger.FieldToken != 0 {
		dst = append(dst, `,"token":`...)
		if w.Token == nil {
			dst = append(dst, "false"...)
		} else {
			dst = appendTokenFacts(dst, w.Token, w.TokenOwnerUnknown)
		}
	}
	if w.Known&ledger.FieldMint != 0 {
		dst = append(dst, `,"mint":`...)
		if w.Mint == nil {
			dst = append(dst, "false"...)
		} else {
			dst = appendMintFacts(dst, w.Mint)
		}
	}
	return append(dst, '}')
}

func appendTokenFacts(dst []byte, t *ledger.TokenAccount, ownerUnknown bool) []byte {
	dst = appendKeyField(dst, `{"mint":"`, &t.Mint)
	if !ownerUnknown {
		dst = appendKeyField(dst, `,"owner":"`, &t.Owner)
	}
	dst = appendAmountField(dst, `,"amount":"`, t.Amount)
	if t.Details.Known {
		d := &t.Details.Value
		dst = append(dst, `,"state":"`...)
		dst = append(dst, nodejson.TokenStates[d.State]...)
		dst = appendOptKeyField(dst, `","delegate":`, &d.Delegate)
		dst = appendAmountField(dst, `,"delegated_amount":"`, d.DelegatedAmount)
		dst = appendOptKeyField(dst, `,"close_authority":`, &d.CloseAuthority)
	}
	dst = append(dst, `,"is_native":`...)
	return append(strconv.AppendBool(dst, t.IsNative()), '}')
}

func appendMintFacts(dst []byte, m *ledger.Mint) []byte {
	dst = append(dst, `{"decimals":`...)
	dst = strconv.AppendUint(dst, uint64(m.Decimals), 10)
	if m.Supply.Known {
		dst = appendAmountField(dst, `,"supply":"`, m.Supply.Value)
	}
	if m.Scaled.Known {
		dst = append(dst, `,"scaled":`...)
		dst = strconv.AppendBool(dst, m.Scaled.Value)
	}
	return append(dst, '}')
}

// The fields below are appended with what stands in front of their value, up to and
// including its quote.

func appendKeyField(dst []byte, front string, k *ledger.Pubkey) []byte {
	return append(k.AppendBase58(append(dst, front...)), '"')
}

func appendHashField(dst []byte, front string, h *ledger.Hash) []byte {
	return append(h.AppendBase58(append(dst, front...)), '"')
}

func appendAmountField(dst []byte, front string, n uint64) []byte {
	return append(strconv.AppendUint(append(dst, front...), n, 10), '"')
}

// appendOptKeyField appends a key that may be known to be none; front has no quote.
func appendOptKeyField(dst []byte, front string, k *ledger.Opt[ledger.Pubkey]) []byte {
	dst = append(dst, front...)
	if !k.Known {
		return append(dst, "null"...)
	}
	return appendKeyField(dst, `"`, &k.Value)
}

// comma separates items of a list.
func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}
