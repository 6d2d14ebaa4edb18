package httpd

import (
	"strconv"
	"time"
	"unicode/utf8"

	"ledgerd/engine/ledger"
	"ledgerd/shard/giveway"
)

// The records of the interface, appended field by field in the order it shows them.
// Numbers are exact, whatever their size; what the ledger never recorded is null.

const timeLayout = "2006-01-02T15:04:05Z"

func appendBlock(dst []byte, b *ledger.Block) []byte {
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

// appendFullBlock appends the block record with the fields that only /blocks/{slot} shows.
func appendFullBlock(dst []byte, a ledger.BlockAnswer, shows include) []byte {
	b := a.Block
	dst = appendBlock(dst, b)
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
	case includeSignatures:
		dst = append(dst, `,"signatures":[`...)
		for i := range b.Transactions {
			dst = append(element(dst, i), '"')
			dst = b.Transactions[i].Signature.AppendBase58(dst)
			dst = append(dst, '"')
		}
		dst = append(dst, ']')
	case includeTransactions:
		dst = append(dst, `,"transaction_records":[`...)
		for i := range b.Transactions {
			dst = appendTransaction(element(dst, i), &b.Transactions[i])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendTransaction(dst []byte, t *ledger.Transaction) []byte {
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
		dst = appendKey(comma(dst, i), &t.Accounts[i])
	}
	dst = append(dst, `],"timestamp":`...)
	dst = appendBlockTime(dst, t.Time)
	return append(dst, '}')
}

// appendAccount appends the account record. Fields no source has shown are "", false, 0.
func appendAccount(dst []byte, a *ledger.Account) []byte {
	return new(accountList).append(dst, a)
}

// appendAccountAs is appendAccount for who has the pubkey's base58 at hand.
func appendAccountAs(dst []byte, a *ledger.Account, pubkey []byte) []byte {
	dst = append(dst, `{"pubkey":"`...)
	dst = append(dst, pubkey...)
	dst = append(dst, '"')
	return appendFields(dst, a)
}

// appendFields appends the account record behind its pubkey.
func appendFields(dst []byte, a *ledger.Account) []byte {
	dst = append(dst, `,"lamports":`...)
	dst = strconv.AppendUint(dst, uint64(a.Lamports), 10)
	return appendTail(dst, a)
}

// appendTail appends the account record behind its lamports.
func appendTail(dst []byte, a *ledger.Account) []byte {
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

// accountTextBytes is as long as an account record gets.
const accountTextBytes = len(`{"pubkey":"","lamports":,"owner":"","executable":false,"rent_epoch":}`) + 2*base58Bytes + 2*decimalBytes

const (
	base58Bytes  = 44 // of 32 bytes
	decimalBytes = 20 // of 64 bits
)

// accountList appends the account records of a list. Behind its lamports an account mostly reads
// like the one before it, and that is copied.
type accountList struct {
	like     *ledger.Account // what was written anew last; nil before the first
	from, to int             // its tail
}

func (l *accountList) append(dst []byte, a *ledger.Account) []byte {
	dst = append(dst, `{"pubkey":"`...)
	dst = a.Pubkey.AppendBase58(dst)
	dst = append(dst, `","lamports":`...)
	dst = strconv.AppendUint(dst, uint64(a.Lamports), 10)
	if l.like != nil && l.like.Known == a.Known && l.like.Executable == a.Executable && l.like.RentEpoch == a.RentEpoch && l.like.Owner == a.Owner {
		return append(dst, dst[l.from:l.to]...)
	}
	l.from = len(dst)
	dst = appendTail(dst, a)
	l.like, l.to = a, len(dst)
	return dst
}

// commonOwners are the programs that own nearly all accounts, encoded once.
var commonOwners = func() (owners [3]struct {
	program ledger.Pubkey
	text    []byte
}) {
	for i, p := range []ledger.Pubkey{ledger.SystemProgram, ledger.TokenProgram, ledger.Token2022Program} {
		owners[i].program, owners[i].text = p, appendKey(nil, &p)
	}
	return owners
}()

func appendOwner(dst []byte, a *ledger.Account) []byte {
	if a.Known&ledger.FieldOwner == 0 {
		return append(dst, `""`...)
	}
	for i := range commonOwners {
		if o := &commonOwners[i]; o.program == a.Owner {
			return append(dst, o.text...)
		}
	}
	return appendKey(dst, &a.Owner)
}

// usualTokenBytes is about how long the record of a holding is that nobody else may spend from.
const usualTokenBytes = 420

// appendToken appends the record of one holding. Decimals and ui_amount are null while
// the mint is unknown, ui_amount also where the mint's amounts are shown scaled.
func appendToken(dst []byte, t *ledger.TokenAnswer) []byte {
	token := t.Account.Token
	dst = append(dst, `{"token_account":`...)
	dst = appendKey(dst, &t.Account.Pubkey)
	dst = append(dst, `,"mint":`...)
	dst = appendKey(dst, &token.Mint)
	dst = append(dst, `,"program_id":`...)
	dst = appendOwner(dst, &t.Account)
	dst = append(dst, `,"amount":"`...)
	dst = strconv.AppendUint(dst, token.Amount, 10)
	dst = append(dst, `","decimals":`...)
	if t.Mint == nil {
		dst = append(dst, `null`...)
	} else {
		dst = strconv.AppendUint(dst, uint64(t.Mint.Decimals), 10)
	}
	dst = append(dst, `,"ui_amount":`...)
	if t.Mint == nil || t.Mint.Scaled.Value {
		dst = append(dst, `null`...)
	} else {
		dst = append(dst, '"')
		dst = ledger.AppendUIAmount(dst, token.Amount, t.Mint.Decimals)
		dst = append(dst, '"')
	}
	return appendTokenDetails(dst, token)
}

// appendTokenDetails appends the rest of the record: null where only balances were shown.
func appendTokenDetails(dst []byte, token *ledger.TokenAccount) []byte {
	known, d := token.Details.Known, &token.Details.Value
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
	dst = strconv.AppendBool(dst, token.IsNative())
	dst = append(dst, `,"delegate":`...)
	dst = appendOptKey(dst, known && d.Delegate.Known, &d.Delegate.Value)
	dst = append(dst, `,"delegated_amount":`...)
	if known {
		dst = append(dst, '"')
		dst = strconv.AppendUint(dst, d.DelegatedAmount, 10)
		dst = append(dst, '"')
	} else {
		dst = append(dst, `null`...)
	}
	dst = append(dst, `,"close_authority":`...)
	dst = appendOptKey(dst, known && d.CloseAuthority.Known, &d.CloseAuthority.Value)
	return append(dst, '}')
}

func appendKey(dst []byte, k *ledger.Pubkey) []byte {
	dst = append(dst, '"')
	dst = k.AppendBase58(dst)
	return append(dst, '"')
}

func appendOptKey(dst []byte, known bool, k *ledger.Pubkey) []byte {
	if !known {
		return append(dst, `null`...)
	}
	return appendKey(dst, k)
}

// appendBlockTime appends the time of a block in whole seconds, or null.
func appendBlockTime(dst []byte, t ledger.Opt[int64]) []byte {
	if !t.Known {
		return append(dst, `null`...)
	}
	return appendTime(dst, time.Unix(t.Value, 0))
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, timeLayout)
	return append(dst, '"')
}

// turnEvery is how many elements of a list are encoded, in some tens of microseconds, between two times that
// others go first: a list must not hold up those who ask for a single account.
const turnEvery = 64

// element begins element i of a list that may be long.
func element(dst []byte, i int) []byte {
	if i%turnEvery == turnEvery-1 {
		giveway.Turn()
	}
	return comma(dst, i)
}

// comma appends the comma that goes before element i of a list.
func comma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// appendString appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD, and
// what would end a script element is escaped as encoding/json does.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < ' ' || r == 0x7f || r == '<' || r == '>' || r == '&':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
