package file

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// AppendEventLine appends the event as one line of our own NDJSON, newline included. Reading
// the line gives the event again: numbers are exact, and what the event marks as unknown is
// left out, so that it stays unknown. Accounts carry their facts, and known data as "bytes", which teaches no facts.
//
// Three things are not said, as they mean nothing in an event: who taught a mint's facts,
// the wallet of a token balance that marks it as unknown, and a previous hash of zeros,
// which readers take for unknown.
func AppendEventLine(dst []byte, e ledger.Event) []byte {
	switch e := e.(type) {
	case *ledger.Block:
		dst = appendBlockLine(dst, e)
	case *ledger.BaseState:
		dst = appendUint(dst, `{"type":"accounts","slot":`, uint64(e.Slot))
		if e.Level.Known {
			dst = appendText(dst, `,"commitment":"`, e.Level.Value.String())
		}
		dst = appendLineAccounts(dst, e.Accounts, e.Mints)
	case *ledger.SlotStatus:
		dst = appendUint(dst, `{"type":"slot","slot":`, uint64(e.Slot))
		dst = appendText(dst, `,"status":"`, e.Status.String())
		if e.Blockhash.Known {
			dst = appendBase58(dst, `,"blockhash":"`, &e.Blockhash.Value)
		}
	default:
		panic(fmt.Sprintf("no event line for event type %T", e))
	}
	return append(dst, "}\n"...)
}

func appendBlockLine(dst []byte, b *ledger.Block) []byte {
	dst = appendUint(dst, `{"type":"block","slot":`, uint64(b.Slot))
	dst = appendUint(dst, `,"parent_slot":`, uint64(b.ParentSlot))
	dst = appendBase58(dst, `,"blockhash":"`, &b.Blockhash)
	if b.PreviousBlockhash.Known {
		dst = appendBase58(dst, `,"previous_blockhash":"`, &b.PreviousBlockhash.Value)
	}
	if b.Time.Known {
		dst = append(dst, `,"block_time":`...)
		dst = strconv.AppendInt(dst, b.Time.Value, 10)
	}
	if b.Height.Known {
		dst = appendUint(dst, `,"block_height":`, b.Height.Value)
	}
	if b.Status != ledger.Processed {
		dst = appendText(dst, `,"commitment":"`, b.Status.String())
	}
	if b.TransactionCount != uint64(len(b.Transactions)) {
		dst = appendUint(dst, `,"transaction_count":`, b.TransactionCount)
	}
	dst = append(dst, `,"transactions":[`...)
	for i := range b.Transactions {
		dst = appendLineTransaction(comma(dst, i), &b.Transactions[i])
	}
	dst = append(dst, ']')
	return appendLineAccounts(dst, b.Accounts, b.Mints)
}

func appendLineTransaction(dst []byte, t *ledger.Transaction) []byte {
	dst = appendBase58(dst, `{"signature":"`, &t.Signature)
	if t.Success.Known {
		dst = appendBool(dst, `,"success":`, t.Success.Value)
	}
	if t.Fee.Known {
		dst = appendUint(dst, `,"fee":`, uint64(t.Fee.Value))
	}
	if t.Err != "" {
		dst = append(append(dst, `,"err":`...), t.Err...)
	}
	dst = append(dst, `,"accounts":[`...)
	for i := range t.Accounts {
		dst = appendBase58(comma(dst, i), `"`, &t.Accounts[i])
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
		dst = appendBase58(comma(dst, len(accounts)+i), `{"pubkey":"`, &mints[i].Pubkey)
		dst = append(appendMintFacts(append(dst, `,"mint":`...), &mints[i].Mint), '}')
	}
	return append(dst, ']')
}

// AppendAccount appends a write as event lines show it: what it does not know is left out.
func AppendAccount(dst []byte, w *ledger.AccountWrite) []byte {
	dst = appendBase58(dst, `{"pubkey":"`, &w.Pubkey)
	dst = appendUint(dst, `,"lamports":`, uint64(w.Lamports))
	if w.Known&ledger.FieldOwner != 0 {
		dst = appendBase58(dst, `,"owner":"`, &w.Owner)
	}
	if w.Known&ledger.FieldExecutable != 0 {
		dst = appendBool(dst, `,"executable":`, w.Executable)
	}
	if w.Known&ledger.FieldRentEpoch != 0 {
		dst = appendUint(dst, `,"rent_epoch":`, w.RentEpoch)
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
	if w.ReadOnly {
		dst = append(dst, `,"read_only":true`...)
	}
	if w.Known&ledger.FieldData != 0 {
		dst = append(base64.StdEncoding.AppendEncode(append(dst, `,"bytes":"`...), w.Data.Bytes()), '"')
	}
	return append(dst, '}')
}

func appendTokenFacts(dst []byte, t *ledger.TokenAccount, ownerUnknown bool) []byte {
	dst = appendBase58(dst, `{"mint":"`, &t.Mint)
	if !ownerUnknown {
		dst = appendBase58(dst, `,"owner":"`, &t.Owner)
	}
	dst = append(appendUint(dst, `,"amount":"`, t.Amount), '"')
	if t.Details.Known {
		d := &t.Details.Value
		dst = append(dst, `,"state":"`...)
		dst = append(dst, nodejson.TokenStates[d.State]...)
		dst = appendOptKeyField(dst, `","delegate":`, &d.Delegate)
		dst = append(appendUint(dst, `,"delegated_amount":"`, d.DelegatedAmount), '"')
		dst = appendOptKeyField(dst, `,"close_authority":`, &d.CloseAuthority)
	}
	dst = append(dst, `,"is_native":`...)
	return append(strconv.AppendBool(dst, t.IsNative()), '}')
}

func appendMintFacts(dst []byte, m *ledger.Mint) []byte {
	dst = appendUint(dst, `{"decimals":`, uint64(m.Decimals))
	if m.Supply.Known {
		dst = append(appendUint(dst, `,"supply":"`, m.Supply.Value), '"')
	}
	if m.Scaled.Known {
		dst = appendBool(dst, `,"scaled":`, m.Scaled.Value)
	}
	return append(dst, '}')
}

// The values below are appended after what stands in front of them, up to and including its quote.

func appendUint(dst []byte, front string, n uint64) []byte {
	return strconv.AppendUint(append(dst, front...), n, 10)
}

func appendBool(dst []byte, front string, b bool) []byte {
	return strconv.AppendBool(append(dst, front...), b)
}

func appendText(dst []byte, front, text string) []byte {
	return append(append(append(dst, front...), text...), '"')
}

func appendBase58(dst []byte, front string, key interface{ AppendBase58([]byte) []byte }) []byte {
	return append(key.AppendBase58(append(dst, front...)), '"')
}

// appendOptKeyField appends a key that may be known to be none; front has no quote.
func appendOptKeyField(dst []byte, front string, k *ledger.Opt[ledger.Pubkey]) []byte {
	dst = append(dst, front...)
	if !k.Known {
		return append(dst, "null"...)
	}
	return appendBase58(dst, `"`, &k.Value)
}

// comma separates items of a list.
func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}
