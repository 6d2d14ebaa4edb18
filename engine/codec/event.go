package codec

import (
	"encoding/binary"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

// Kinds of encoded events. They differ from those of records, so that neither is taken for the
// other.
const (
	kindBlock      = 1
	kindBaseState  = 2
	kindSlotStatus = 3
	kindLevelState = 4 // base state that says its level
)

// AppendEvent appends the encoding of an event: format version u8, kind u8, of base state that says its level that level
// u8, 0 or 1, and then the block, base state or slot status. The position and time of a transaction are not
// written: a block says them, and AddTransaction stamps them.
func AppendEvent(dst []byte, e ledger.Event) []byte {
	format := eventFormat(e)
	withData := format >= formatDataEvent
	dst = append(dst, format)
	switch e := e.(type) {
	case *ledger.Block:
		return appendBlock(append(dst, kindBlock), e, withData)
	case *ledger.BaseState:
		if e.Level.Known {
			dst = append(dst, kindLevelState, byte(e.Level.Value))
		} else {
			dst = append(dst, kindBaseState)
		}
		return appendBaseState(dst, e, withData)
	case *ledger.SlotStatus:
		return appendSlotStatus(append(dst, kindSlotStatus), e)
	}
	panic(fmt.Sprintf("no encoding for event type %T", e))
}

// eventFormat returns the lowest format version that can express the event.
func eventFormat(e ledger.Event) byte {
	switch e := e.(type) {
	case *ledger.Block:
		if needs := writesNeed(e.Accounts, formatDataEvent, formatReadOnlyEvent); needs > 0 {
			return needs
		} else if hasErr(e) {
			return formatErrEvent
		}
	case *ledger.BaseState:
		return max(formatVersion, writesNeed(e.Accounts, formatDataEvent, formatReadOnlyEvent))
	}
	return formatVersion
}

// writesNeed returns the format version that writes need: readOnly if an account is only read, data if only that is needed, else 0.
func writesNeed(writes []ledger.AccountWrite, data, readOnly byte) (format byte) {
	for i := range writes {
		if writes[i].OnlyRead() {
			return readOnly
		} else if writes[i].Known&ledger.FieldData != 0 {
			format = data
		}
	}
	return format
}

// hasErr reports whether a transaction of the block has an error.
func hasErr(b *ledger.Block) bool {
	return slices.ContainsFunc(b.Transactions, func(t ledger.Transaction) bool { return t.Err != "" })
}

// DecodeEvent reads an event that takes the whole of b. Errors match ErrCorrupt.
func DecodeEvent(b []byte) (ledger.Event, error) {
	d := decoder{b: b}
	version := d.version(formatReadOnlyEvent)
	d.tellsData = version >= formatDataEvent
	var e ledger.Event
	switch d.byte() {
	case kindBlock:
		e = d.block()
	case kindBaseState:
		e = d.baseState(ledger.Opt[ledger.Commitment]{})
	case kindLevelState:
		level := d.byte()
		if level > byte(ledger.Confirmed) {
			d.fail("bad level of base state")
		}
		e = d.baseState(ledger.Some(ledger.Commitment(level)))
	case kindSlotStatus:
		e = d.slotStatus()
	default:
		d.fail("unknown kind of event")
	}
	if d.err == nil && version != eventFormat(e) {
		d.fail("not the format version of such an event")
	}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("cannot read event: %w", err)
	}
	return e, nil
}

// BlockSlot returns the slot of an encoded block without decoding the rest. It returns false if b is not a block.
func BlockSlot(b []byte) (ledger.Slot, bool) {
	const head = 3 // format version, kind, flags
	if len(b) <= head || b[1] != kindBlock {
		return 0, false
	}
	slot, n := binary.Uvarint(b[head:])
	return ledger.Slot(slot), n > 0
}

// version reads the format version, which is at most newest.
func (d *decoder) version(newest byte) byte {
	v := d.byte()
	if v < formatVersion || v > newest {
		d.fail(fmt.Sprintf("format version %d, this program reads up to %d,", v, newest))
	}
	return v
}

// flags of a block. The commitment takes the two bits from blockStatusShift on.
const (
	blockPreviousHash = 1 << 0
	blockTime         = 1 << 1
	blockHeight       = 1 << 2
	blockStatusShift  = 3
	blockStatusMask   = 3 << blockStatusShift
	blockFlags        = blockPreviousHash | blockTime | blockHeight | blockStatusMask
)

// appendBlock appends a block:
//
//	flags                 previous blockhash, time, height known; status in two bits
//	slot, parent slot     number × 2
//	blockhash             key
//	[previous blockhash]  key
//	[time]                signed, Unix seconds
//	[height]              number
//	transaction count     number, as the source states it
//	transactions          see appendTransactions
//	account writes        number n, write × n
//	mint writes           number n, (pubkey key, mint) × n
func appendBlock(dst []byte, b *ledger.Block, withData bool) []byte {
	dst = append(dst, bit(b.PreviousBlockhash.Known, blockPreviousHash)|bit(b.Time.Known, blockTime)|
		bit(b.Height.Known, blockHeight)|byte(b.Status)<<blockStatusShift)
	dst = appendNumber(dst, b.Slot)
	dst = appendNumber(dst, b.ParentSlot)
	dst = append(dst, b.Blockhash[:]...)
	dst = appendOptKey(dst, &b.PreviousBlockhash)
	if b.Time.Known {
		dst = binary.AppendVarint(dst, b.Time.Value)
	}
	if b.Height.Known {
		dst = appendNumber(dst, b.Height.Value)
	}
	dst = appendNumber(dst, b.TransactionCount)
	dst = appendTransactions(dst, b.Transactions)
	return appendWrites(dst, b.Accounts, b.Mints, withData)
}

func (d *decoder) block() *ledger.Block {
	b := new(ledger.Block)
	f := d.flags(blockFlags)
	if b.Status = ledger.Commitment(f & blockStatusMask >> blockStatusShift); b.Status > ledger.Finalized {
		d.fail("bad block status")
	}
	b.Slot = ledger.Slot(d.number())
	b.ParentSlot = ledger.Slot(d.number())
	d.bytes(b.Blockhash[:])
	b.PreviousBlockhash = optKey[ledger.Hash](d, f&blockPreviousHash != 0)
	if f&blockTime != 0 {
		b.Time = ledger.Some(d.signed())
	}
	if f&blockHeight != 0 {
		b.Height = ledger.Some(d.number())
	}
	b.TransactionCount = d.number()
	d.transactions(b)
	b.Accounts, b.Mints = d.writes()
	return b
}

// flags of a transaction.
const (
	transactionFee          = 1 << 0
	transactionSuccess      = 1 << 1
	transactionSuccessValue = 1 << 2
	transactionErr          = 1 << 3
	transactionFlags        = transactionFee | transactionSuccess | transactionSuccessValue | transactionErr

	minTransactionBytes = 1 + len(ledger.Signature{}) + 1
)

// appendTransactions appends the transactions of a block:
//
//	keys            number, of all transactions together: decoders allocate them once
//	transactions    number n, then × n:
//	  flags         fee known, success known, success, error known
//	  signature     64
//	  [fee]         number
//	  [error]       number n, n bytes of JSON; only of a failed transaction
//	  accounts      number n, key × n
func appendTransactions(dst []byte, transactions []ledger.Transaction) []byte {
	keys := 0
	for i := range transactions {
		keys += len(transactions[i].Accounts)
	}
	dst = appendNumber(dst, keys)
	dst = appendNumber(dst, len(transactions))
	for i := range transactions {
		t := &transactions[i]
		dst = append(dst, bit(t.Fee.Known, transactionFee)|bit(t.Success.Known, transactionSuccess)|
			bit(t.Success.Known && t.Success.Value, transactionSuccessValue)|bit(t.Err != "", transactionErr))
		dst = append(dst, t.Signature[:]...)
		if t.Fee.Known {
			dst = appendNumber(dst, t.Fee.Value)
		}
		if t.Err != "" {
			dst = append(appendNumber(dst, len(t.Err)), t.Err...)
		}
		dst = appendNumber(dst, len(t.Accounts))
		for j := range t.Accounts {
			dst = append(dst, t.Accounts[j][:]...)
		}
	}
	return dst
}

// transactions reads the transactions of b and stamps them, as AddTransaction does.
func (d *decoder) transactions(b *ledger.Block) {
	keys := make([]ledger.Pubkey, d.count(len(ledger.Pubkey{})))
	n := d.count(minTransactionBytes)
	if n > 0 {
		b.Transactions = make([]ledger.Transaction, n)
	}
	for i := range b.Transactions {
		t := &b.Transactions[i]
		t.Slot, t.Time, t.Index = b.Slot, b.Time, uint32(i)
		f := d.flags(transactionFlags)
		if f&(transactionSuccess|transactionSuccessValue) == transactionSuccessValue {
			d.fail("bad transaction flags")
		}
		if f&transactionSuccess != 0 {
			t.Success = ledger.Some(f&transactionSuccessValue != 0)
		}
		d.bytes(t.Signature[:])
		if f&transactionFee != 0 {
			t.Fee = ledger.Some(ledger.Lamports(d.number()))
		}
		if f&transactionErr != 0 {
			t.Err = d.text()
			if t.Err == "" || len(t.Err) > ledger.MaxErrBytes || !t.Success.Known || t.Success.Value {
				d.fail("bad error of a transaction")
			}
		}
		n := d.count(len(ledger.Pubkey{}))
		if n > len(keys) {
			d.fail("more keys than announced")
		}
		if d.err != nil {
			return
		}
		if n > 0 {
			t.Accounts, keys = keys[:n:n], keys[n:]
		}
		for j := range t.Accounts {
			d.bytes(t.Accounts[j][:])
		}
	}
	if len(keys) > 0 {
		d.fail("fewer keys than announced")
	}
}

func appendMintWrite(dst []byte, m *ledger.MintWrite, _ bool) []byte {
	return AppendMint(append(dst, m.Pubkey[:]...), &m.Mint)
}

func (d *decoder) mintWrite(m *ledger.MintWrite) {
	d.bytes(m.Pubkey[:])
	d.mint(&m.Mint)
}

// appendWrites appends a list of account writes, with their data if the format has data, and a list of mint writes.
func appendWrites(dst []byte, accounts []ledger.AccountWrite, mints []ledger.MintWrite, withData bool) []byte {
	return appendList(appendList(dst, accounts, withData, appendWrite), mints, withData, appendMintWrite)
}

func (d *decoder) writes() ([]ledger.AccountWrite, []ledger.MintWrite) {
	accounts := list(d, minWriteBytes, (*decoder).write)
	return accounts, list(d, minMintWriteBytes, (*decoder).mintWrite)
}

// appendBaseState appends base state:
//
//	slot              number
//	account writes    number n, write × n
//	mint writes       number n, (pubkey key, mint) × n
func appendBaseState(dst []byte, b *ledger.BaseState, withData bool) []byte {
	dst = appendNumber(dst, b.Slot)
	return appendWrites(dst, b.Accounts, b.Mints, withData)
}

func (d *decoder) baseState(level ledger.Opt[ledger.Commitment]) *ledger.BaseState {
	b := &ledger.BaseState{Slot: ledger.Slot(d.number()), Level: level}
	b.Accounts, b.Mints = d.writes()
	return b
}

const statusBlockhash = 1 << 0 // flag of a slot status

// appendSlotStatus appends a slot status:
//
//	flags          blockhash known
//	status         u8: confirmed 1, finalized 2, dead 3
//	slot           number
//	[blockhash]    key
func appendSlotStatus(dst []byte, s *ledger.SlotStatus) []byte {
	dst = append(dst, bit(s.Blockhash.Known, statusBlockhash), byte(s.Status))
	dst = appendNumber(dst, s.Slot)
	return appendOptKey(dst, &s.Blockhash)
}

func (d *decoder) slotStatus() *ledger.SlotStatus {
	s := new(ledger.SlotStatus)
	f := d.flags(statusBlockhash)
	s.Status = d.status()
	s.Slot = ledger.Slot(d.number())
	s.Blockhash = optKey[ledger.Hash](d, f&statusBlockhash != 0)
	return s
}

func (d *decoder) status() ledger.Status {
	s := ledger.Status(d.byte())
	if s < ledger.StatusConfirmed || s > ledger.StatusDead {
		d.fail("unknown status")
	}
	return s
}
