package encode

import (
	"encoding/json"
	"strconv"
	"time"

	"ledgerd/engine/ledger"
)

// Include says what a block shows beside its record.
type Include uint8

const (
	Nothing Include = iota
	Signatures
	Transactions
)

const timeLayout = "2006-01-02T15:04:05Z"

// AppendBlock appends the block record.
func AppendBlock(dst []byte, b *ledger.Block) []byte {
	dst = append(dst, `{"slot":`...)
	dst = strconv.AppendUint(dst, uint64(b.Slot), 10)
	dst = append(dst, `,"blockhash":"`...)
	dst = b.Blockhash.AppendBase58(dst)
	dst = append(dst, `","parent_slot":`...)
	dst = strconv.AppendUint(dst, uint64(b.ParentSlot), 10)
	dst = append(dst, `,"timestamp":`...)
	dst = appendBlockTime(dst, b.Time)
	dst = append(dst, `,"transactions":`...)
	dst = strconv.AppendUint(dst, b.TransactionCount, 10)
	return append(dst, '}')
}

// AppendFullBlock appends the block record with the fields that only /blocks/{slot} shows.
func AppendFullBlock(dst []byte, a ledger.BlockAnswer, shows Include, list List) []byte {
	b := a.Block
	dst = AppendBlock(dst, b)
	dst = append(dst[:len(dst)-1], `,"previous_blockhash":`...)
	if b.PreviousBlockhash.Known {
		dst = append(dst, '"')
		dst = b.PreviousBlockhash.Value.AppendBase58(dst)
		dst = append(dst, '"')
	} else {
		dst = append(dst, `null`...)
	}
	dst = append(dst, `,"block_height":`...)
	if b.Height.Known {
		dst = strconv.AppendUint(dst, b.Height.Value, 10)
	} else {
		dst = append(dst, `null`...)
	}
	dst = append(dst, `,"commitment":"`...)
	dst = append(dst, a.Commitment.String()...)
	dst = append(dst, '"')
	switch shows {
	case Signatures:
		dst = append(dst, `,"signatures":[`...)
		for i := range b.Transactions {
			dst = append(list.Next(dst), '"')
			dst = b.Transactions[i].Signature.AppendBase58(dst)
			dst = append(dst, '"')
		}
		dst = append(dst, ']')
	case Transactions:
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
	dst = append(dst, `","slot":`...)
	dst = strconv.AppendUint(dst, uint64(t.Slot), 10)
	dst = append(dst, `,"success":`...)
	if t.Success.Known {
		dst = strconv.AppendBool(dst, t.Success.Value)
	} else {
		dst = append(dst, `null`...)
	}
	dst = append(dst, `,"fee":`...)
	if t.Fee.Known {
		dst = strconv.AppendUint(dst, uint64(t.Fee.Value), 10)
	} else {
		dst = append(dst, `null`...)
	}
	dst = append(dst, `,"accounts":[`...)
	for i := range t.Accounts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendKey(dst, &t.Accounts[i])
	}
	dst = append(dst, `],"timestamp":`...)
	dst = appendBlockTime(dst, t.Time)
	return append(dst, '}')
}

// AppendAccount appends the account record. Fields no source has shown are "", false, 0.
func AppendAccount(dst []byte, a *ledger.Account) []byte {
	dst = append(dst, `{"pubkey":`...)
	dst = AppendKey(dst, &a.Pubkey)
	dst = append(dst, `,"lamports":`...)
	dst = strconv.AppendUint(dst, uint64(a.Lamports), 10)
	dst = append(dst, `,"owner":`...)
	dst = appendOwner(dst, a)
	dst = append(dst, `,"executable":`...)
	dst = strconv.AppendBool(dst, a.Executable && a.Known&ledger.FieldExecutable != 0)
	dst = append(dst, `,"rent_epoch":`...)
	rentEpoch := a.RentEpoch
	if a.Known&ledger.FieldRentEpoch == 0 {
		rentEpoch = 0
	}
	dst = strconv.AppendUint(dst, rentEpoch, 10)
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
		dst = append(dst, `{"mint":`...)
		dst = AppendKey(dst, &t.Mint)
		dst = append(dst, `,"owner":`...)
		dst = AppendKey(dst, &t.Owner)
		dst = appendHolding(dst, t, mint)
	}
	dst = append(dst, `,"mint":`...)
	if own == nil {
		return append(dst, `null}`...)
	}
	dst = append(dst, `{"decimals":`...)
	dst = strconv.AppendUint(dst, uint64(own.Decimals), 10)
	dst = append(dst, `,"supply":`...)
	dst = appendAmount(dst, own.Supply.Known, own.Supply.Value)
	return append(dst, `}}`...)
}

func appendOwner(dst []byte, a *ledger.Account) []byte {
	if a.Known&ledger.FieldOwner == 0 {
		return append(dst, `""`...)
	}
	return AppendKey(dst, &a.Owner)
}

// AppendToken appends the record of one holding of a wallet.
func AppendToken(dst []byte, t *ledger.TokenAnswer) []byte {
	dst = append(dst, `{"token_account":`...)
	dst = AppendKey(dst, &t.Account.Pubkey)
	dst = append(dst, `,"mint":`...)
	dst = AppendKey(dst, &t.Account.Token.Mint)
	dst = append(dst, `,"program_id":`...)
	dst = appendOwner(dst, &t.Account)
	return appendHolding(dst, t.Account.Token, t.Mint)
}

// appendHolding appends the rest of a record, from the amount on. Decimals and ui_amount are null
// while the mint is unknown, ui_amount also where the mint's amounts are shown scaled; state,
// delegate and close authority are null where only balances were shown.
func appendHolding(dst []byte, t *ledger.TokenAccount, mint *ledger.Mint) []byte {
	dst = append(dst, `,"amount":`...)
	dst = appendAmount(dst, true, t.Amount)
	dst = append(dst, `,"decimals":`...)
	if mint == nil {
		dst = append(dst, `null,"ui_amount":null`...)
	} else {
		dst = strconv.AppendUint(dst, uint64(mint.Decimals), 10)
		dst = append(dst, `,"ui_amount":`...)
		if mint.Scaled.Value {
			dst = append(dst, `null`...)
		} else {
			dst = append(dst, '"')
			dst = ledger.AppendUIAmount(dst, t.Amount, mint.Decimals)
			dst = append(dst, '"')
		}
	}
	known, d := t.Details.Known, &t.Details.Value
	dst = append(dst, `,"state":`...)
	switch {
	case !known:
		dst = append(dst, `null`...)
	case d.State == ledger.TokenFrozen:
		dst = append(dst, `"frozen"`...)
	default:
		dst = append(dst, `"initialized"`...)
	}
	dst = append(dst, `,"is_native":`...)
	dst = strconv.AppendBool(dst, t.IsNative())
	dst = append(dst, `,"delegate":`...)
	dst = appendOptKey(dst, known && d.Delegate.Known, &d.Delegate.Value)
	dst = append(dst, `,"delegated_amount":`...)
	dst = appendAmount(dst, known, d.DelegatedAmount)
	dst = append(dst, `,"close_authority":`...)
	dst = appendOptKey(dst, known && d.CloseAuthority.Known, &d.CloseAuthority.Value)
	return append(dst, '}')
}

// appendAmount appends an amount of tokens as a decimal string, or null.
func appendAmount(dst []byte, known bool, amount uint64) []byte {
	if !known {
		return append(dst, `null`...)
	}
	dst = append(dst, '"')
	dst = strconv.AppendUint(dst, amount, 10)
	return append(dst, '"')
}

// AppendKey appends a pubkey as a JSON string.
func AppendKey(dst []byte, k *ledger.Pubkey) []byte {
	dst = append(dst, '"')
	dst = k.AppendBase58(dst)
	return append(dst, '"')
}

func appendOptKey(dst []byte, known bool, k *ledger.Pubkey) []byte {
	if !known {
		return append(dst, `null`...)
	}
	return AppendKey(dst, k)
}

// appendBlockTime appends the time of a block in whole seconds, or null.
func appendBlockTime(dst []byte, t ledger.Opt[int64]) []byte {
	if !t.Known {
		return append(dst, `null`...)
	}
	return AppendTime(dst, time.Unix(t.Value, 0))
}

// AppendTime appends an instant as ISO 8601 in UTC, in whole seconds.
func AppendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, timeLayout)
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
