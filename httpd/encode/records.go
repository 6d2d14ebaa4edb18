package encode

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"ledgerd/engine/ledger"
)

// AppendBlock appends the block record.
func AppendBlock(dst []byte, b *ledger.Block) []byte {
	dst = AppendNumber(dst, `{"slot":`, b.Slot)
	dst = AppendKey(dst, `,"blockhash":`, (*ledger.Pubkey)(&b.Blockhash))
	dst = AppendNumber(dst, `,"parent_slot":`, b.ParentSlot)
	dst = AppendOpt(dst, `,"timestamp":`, b.Time, UnixTime)
	dst = AppendNumber(dst, `,"transactions":`, b.TransactionCount)
	return append(dst, '}')
}

// AppendFullBlock appends the block record with the fields that only /blocks/{slot} shows.
func AppendFullBlock(dst []byte, a ledger.BlockAnswer, shows ledger.BlockParts, list List) []byte {
	b := a.Block
	dst = AppendBlock(dst, b)
	dst = AppendOpt(dst[:len(dst)-1], `,"previous_blockhash":`, b.PreviousBlockhash, hash)
	dst = AppendOpt(dst, `,"block_height":`, b.Height, Number)
	dst = append(append(dst, `,"commitment":"`...), a.Commitment.String()...)
	dst = append(dst, '"')
	switch shows {
	case ledger.SignaturesOnly:
		dst = append(dst, `,"signatures":[`...)
		for i := range b.Transactions {
			dst = append(list.Next(dst), '"')
			dst = b.Transactions[i].Signature.AppendBase58(dst)
			dst = append(dst, '"')
		}
		dst = append(dst, ']')
	case ledger.WholeBlock:
		dst = append(dst, `,"transaction_records":[`...)
		for i := range b.Transactions {
			dst = AppendTransaction(list.Next(dst), &b.Transactions[i])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// AppendTransaction appends the transaction record.
func AppendTransaction(dst []byte, t *ledger.Transaction) []byte {
	dst = append(dst, `{"signature":"`...)
	dst = t.Signature.AppendBase58(dst)
	dst = AppendNumber(dst, `","slot":`, t.Slot)
	dst = AppendOpt(dst, `,"success":`, t.Success, strconv.AppendBool)
	dst = AppendOpt(dst, `,"fee":`, t.Fee, Number)
	dst = append(dst, `,"accounts":[`...)
	for i := range t.Accounts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendKey(dst, "", &t.Accounts[i])
	}
	dst = AppendOpt(dst, `],"timestamp":`, t.Time, UnixTime)
	return append(dst, '}')
}

// AppendAccount appends the account record. Fields no source has shown are "", false, 0.
func AppendAccount(dst []byte, a *ledger.Account) []byte {
	dst = AppendKey(dst, `{"pubkey":`, &a.Pubkey)
	dst = AppendNumber(dst, `,"lamports":`, a.Lamports)
	dst = AppendOwner(dst, `,"owner":`, a)
	dst = strconv.AppendBool(append(dst, `,"executable":`...), a.Executable && a.Known&ledger.FieldExecutable != 0)
	rentEpoch := a.RentEpoch
	if a.Known&ledger.FieldRentEpoch == 0 {
		rentEpoch = 0
	}
	dst = AppendNumber(dst, `,"rent_epoch":`, rentEpoch)
	return append(dst, '}')
}

// AppendAccountWithFacts appends the account record with its facts as a token account and as a
// mint, null where it is none. mint is that of the holding, own are the facts of the account
// itself; both may be nil.
func AppendAccountWithFacts(dst []byte, a *ledger.Account, mint, own *ledger.Mint) []byte {
	dst = AppendAccount(dst, a)
	dst = append(dst[:len(dst)-1], `,"token":`...)
	if t := a.Token; t == nil {
		dst = append(dst, `null`...)
	} else {
		dst = AppendKey(dst, `{"mint":`, &t.Mint)
		dst = AppendKey(dst, `,"owner":`, &t.Owner)
		dst = appendHolding(dst, t, mint)
	}
	dst = append(dst, `,"mint":`...)
	if own == nil {
		return append(dst, `null}`...)
	}
	dst = AppendNumber(dst, `{"decimals":`, uint64(own.Decimals))
	dst = AppendOpt(dst, `,"supply":`, own.Supply, amount)
	return append(dst, `}}`...)
}

// Slice is a part of an account's data.
type Slice struct{ Offset, Length uint64 }

// WholeData is all of it.
var WholeData = Slice{0, math.MaxUint64}

// Of returns the part of some data, which is empty beyond its end.
func (s Slice) Of(data []byte) []byte {
	data = data[min(s.Offset, uint64(len(data))):]
	return data[:min(s.Length, uint64(len(data)))]
}

// TextBytes returns how long the text of the part of an account's data is.
func (s Slice) TextBytes(a *ledger.Account) int {
	return base64.StdEncoding.EncodedLen(len(s.Of(a.Data.Bytes())))
}

// AppendData adds to the end of an account's record how much data it has and a part of that, null where it is not known.
func AppendData(record []byte, a *ledger.Account, s Slice) []byte {
	record = record[:len(record)-1]
	if a.Known&ledger.FieldData == 0 {
		return append(record, `,"space":null,"data":null}`...)
	}
	record = AppendNumber(record, `,"space":`, uint64(a.Data.Len()))
	record = append(record, `,"data":"`...)
	record = base64.StdEncoding.AppendEncode(record, s.Of(a.Data.Bytes()))
	return append(record, `"}`...)
}

// AppendOwner appends what stands before the owner of an account, and the owner, "" where no source has shown it.
func AppendOwner(dst []byte, before string, a *ledger.Account) []byte {
	if a.Known&ledger.FieldOwner == 0 {
		return append(append(dst, before...), `""`...)
	}
	return AppendKey(dst, before, &a.Owner)
}

// AppendToken appends the record of a token account as a holding of its wallet. mint is nil while nothing is known of it.
func AppendToken(dst []byte, a *ledger.Account, mint *ledger.Mint) []byte {
	dst = AppendKey(dst, `{"token_account":`, &a.Pubkey)
	dst = AppendKey(dst, `,"mint":`, &a.Token.Mint)
	dst = AppendOwner(dst, `,"program_id":`, a)
	return appendHolding(dst, a.Token, mint)
}

// appendHolding appends the rest of a record, from the amount on. Decimals and ui_amount are null
// while the mint is unknown, ui_amount also where the mint's amounts are shown scaled; state,
// delegate and close authority are null where only balances were shown.
func appendHolding(dst []byte, t *ledger.TokenAccount, mint *ledger.Mint) []byte {
	dst = AppendNumber(dst, `,"amount":"`, t.Amount)
	if mint == nil {
		dst = append(dst, `","decimals":null,"ui_amount":`...)
	} else {
		dst = append(AppendNumber(dst, `","decimals":`, mint.Decimals), `,"ui_amount":`...)
	}
	if mint == nil || mint.Scaled.Value {
		dst = append(dst, `null`...)
	} else {
		dst = append(ledger.AppendUIAmount(append(dst, '"'), t.Amount, mint.Decimals), '"')
	}
	d := &t.Details.Value
	switch {
	case !t.Details.Known:
		dst = append(dst, `,"state":null`...)
	case d.State == ledger.TokenFrozen:
		dst = append(dst, `,"state":"frozen"`...)
	default:
		dst = append(dst, `,"state":"initialized"`...)
	}
	dst = strconv.AppendBool(append(dst, `,"is_native":`...), t.IsNative())
	if !t.Details.Known {
		return append(dst, `,"delegate":null,"delegated_amount":null,"close_authority":null}`...)
	}
	dst = AppendOpt(dst, `,"delegate":`, d.Delegate, key)
	dst = AppendNumber(dst, `,"delegated_amount":"`, d.DelegatedAmount)
	dst = AppendOpt(dst, `","close_authority":`, d.CloseAuthority, key)
	return append(dst, '}')
}

// AppendNumber appends what stands before a number, and the number.
func AppendNumber[T ~uint8 | ~uint32 | ~uint64](dst []byte, before string, n T) []byte {
	return strconv.AppendUint(append(dst, before...), uint64(n), 10)
}

// AppendOpt appends what stands before a value, and the value as a function appends it, or null.
func AppendOpt[T any](dst []byte, before string, v ledger.Opt[T], as func([]byte, T) []byte) []byte {
	dst = append(dst, before...)
	if !v.Known {
		return append(dst, `null`...)
	}
	return as(dst, v.Value)
}

// Number appends a number.
func Number[T ~uint8 | ~uint32 | ~uint64](dst []byte, n T) []byte { return AppendNumber(dst, "", n) }

// amount appends an amount of tokens as a decimal string.
func amount(dst []byte, n uint64) []byte { return append(AppendNumber(dst, `"`, n), '"') }

func key(dst []byte, k ledger.Pubkey) []byte { return AppendKey(dst, "", &k) }

func hash(dst []byte, h ledger.Hash) []byte { return key(dst, ledger.Pubkey(h)) }

// UnixTime appends the time of a block, in Unix seconds.
func UnixTime(dst []byte, seconds int64) []byte { return AppendTime(dst, time.Unix(seconds, 0)) }

// AppendKey appends what stands before a pubkey, and the pubkey as a JSON string.
func AppendKey(dst []byte, before string, k *ledger.Pubkey) []byte {
	dst = append(append(dst, before...), '"')
	dst = k.AppendBase58(dst)
	return append(dst, '"')
}

// AppendTime appends an instant as ISO 8601 in UTC, in whole seconds.
func AppendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(append(dst, '"'), time.RFC3339) // which is much faster than others
	return append(dst, '"')
}

// List begins the elements of a JSON list.
type List struct {
	Turn func() // lets other goroutines go first, now and then while a long list is encoded; nil: nothing does
	n    int
}

// turnEvery is how many elements are encoded between two turns: some tens of microseconds.
const turnEvery = 64

// Next begins the next element.
func (l *List) Next(dst []byte) []byte {
	l.n++
	if l.n%turnEvery == 0 && l.Turn != nil {
		l.Turn()
	}
	if l.n == 1 {
		return dst
	}
	return append(dst, ',')
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // of a string it cannot fail
	return append(dst, text...)
}
