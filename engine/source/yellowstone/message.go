package yellowstone

import (
	"cmp"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// Kind says what an update tells.
type Kind uint8

const (
	Other             Kind = iota // nothing that we need
	Account                       // a write of an account
	Slot                          // a status of a slot
	Transaction                   // a transaction of a block
	Meta                          // the head of a block
	Ping                          // the server wants to hear of us
	TransactionStatus             // there is a transaction of a block, of which only the index is told
)

// SlotStatus is what a validator says of a slot.
type SlotStatus uint64

const (
	Processed SlotStatus = iota
	Confirmed
	Finalized
	FirstShred
	Completed // all shreds are there
	CreatedBank
	Dead // the block is broken: it never comes on any chain
)

// Update is one message. Beside Kind, Slot and Bank only the part of its kind means something.
type Update struct {
	Kind Kind
	Slot ledger.Slot
	// Bank tells the tries of a slot apart, of which a later one has the higher number; 0 where
	// the server does not tell.
	Bank uint64

	Status SlotStatus // of Slot

	// Of Account.
	Write        ledger.AccountWrite
	WriteVersion uint64 // grows with each write of an account

	// Of Transaction, and its Index of TransactionStatus.
	Transaction ledger.Transaction // without its block's slot and time

	// Of Meta.
	Head Head
}

// Head is what a validator says of a block beside its content.
type Head struct {
	Hash         ledger.Hash
	ParentSlot   ledger.Slot
	ParentHash   ledger.Opt[ledger.Hash]
	Time         ledger.Opt[int64] // Unix seconds
	Height       ledger.Opt[uint64]
	Transactions uint64 // how many the block holds
}

var errField = errors.New("a field is cut short or of another type")

// reader visits the fields of a protobuf message in order, until one is not as it must be.
type reader struct {
	rest   []byte
	err    error            // why it ended early
	number protowire.Number // of the field
	kind   protowire.Type
	value  uint64 // of a varint
	bytes  []byte // of what has a length; a part of the message
}

// next goes to the next field, false if there is none. Fixed-size fields have no value: nothing that we read is one.
func (r *reader) next() bool {
	if r.err != nil || len(r.rest) == 0 {
		return false
	}
	var n int
	if r.number, r.kind, n = protowire.ConsumeTag(r.rest); n < 0 {
		return r.fail(errField)
	}
	r.rest = r.rest[n:]
	switch r.kind {
	case protowire.VarintType:
		r.value, n = protowire.ConsumeVarint(r.rest)
	case protowire.BytesType:
		r.bytes, n = protowire.ConsumeBytes(r.rest)
	case protowire.Fixed32Type, protowire.Fixed64Type:
		n = protowire.ConsumeFieldValue(r.number, r.kind, r.rest)
	default: // groups, which proto3 does not have
		n = -1
	}
	if n < 0 {
		return r.fail(errField)
	}
	r.rest = r.rest[n:]
	return true
}

// fail ends the reader, unless err is nil or an earlier error did.
func (r *reader) fail(err error) bool {
	r.err = cmp.Or(r.err, err)
	return false
}

// number reads the field as a number.
func number[T ~uint64 | ~int64](r *reader, to *T) {
	if r.kind != protowire.VarintType {
		r.fail(errField)
	}
	*to = T(r.value)
}

// boolean reads a number that is not zero as true.
func (r *reader) boolean(to *bool) {
	var v uint64
	number(r, &v)
	*to = v != 0
}

// part returns the message within the message, or bytes.
func (r *reader) part() []byte {
	if r.kind != protowire.BytesType {
		r.fail(errField)
		return nil
	}
	return r.bytes
}

// hash reads a hash in base58.
func (r *reader) hash(to *ledger.Hash) {
	var err error
	if *to, err = ledger.ParseHash(r.part()); err != nil {
		r.fail(errors.New("a hash is not base58"))
	}
}

// appendKey appends a key to keys.
func (r *reader) appendKey(keys *[]ledger.Pubkey) {
	key := r.part()
	if len(key) != len(ledger.Pubkey{}) {
		r.fail(fmt.Errorf("a key has %d bytes", len(key)))
		return
	}
	*keys = append(*keys, ledger.Pubkey(key))
}

// optional reads a message around a number, of which zero is left out.
func optional[T ~uint64 | ~int64](r *reader) ledger.Opt[T] {
	var v T
	m := reader{rest: r.part()}
	for m.next() {
		if m.number == 1 {
			number(&m, &v)
		}
	}
	r.fail(m.err)
	return ledger.Some(v)
}

// Decoder reads messages. The zero value reads those of a subscription that asked for whole data.
type Decoder struct {
	// Sliced says that the subscription asked for the slices of data that [DataSlices] names.
	Sliced bool
	// Data are the programs whose accounts are told with their data, where it comes whole; nil: none.
	Data *ledger.DataPrograms
}

// Decode reads one SubscribeUpdate: account 2, slot 3, transaction 4, block 5, ping 6,
// block_meta 7, entry 8, pong 9, transaction_status 10, of which the last one counts. What the
// update holds of it is copied. An error says what is wrong with the message; u is worth
// nothing then.
func (d Decoder) Decode(message []byte, u *Update) error {
	*u = Update{}
	m := reader{rest: message}
	for m.next() {
		if m.number < 2 || m.number > 10 {
			continue // filters, created_at
		}
		*u = Update{}
		part, what, err := m.part(), "", error(nil)
		switch m.number {
		case 2:
			what, err = "an account", u.decodeAccount(part, d)
		case 3:
			u.Kind, what, err = Slot, "a slot's status", u.decodeSlot(part)
		case 4:
			u.Kind, what, err = Transaction, "a transaction", u.decodeTransaction(part)
		case 6:
			u.Kind = Ping
		case 7:
			u.Kind, what, err = Meta, "a block's head", u.decodeMeta(part)
		case 10:
			u.Kind, what, err = TransactionStatus, "a transaction's status", u.decodeTransactionStatus(part)
		}
		if err != nil {
			m.fail(fmt.Errorf("%s: %w", what, err))
		}
	}
	return m.err
}

// decodeAround reads what stands around an account or a transaction: its content 1, slot 2, is_startup 3 of an account, and bank_id, whose
// number is given.
func (u *Update) decodeAround(message []byte, bank protowire.Number) (content []byte, isStartup bool, err error) {
	m := reader{rest: message}
	for m.next() {
		switch m.number {
		case 1:
			content = m.part()
		case 2:
			number(&m, &u.Slot)
		case bank:
			number(&m, &u.Bank)
		case 3:
			m.boolean(&isStartup)
		}
	}
	return content, isStartup, m.err
}

// decodeSlot reads SubscribeUpdateSlot: slot 1, parent 2, status 3, dead_error 4, bank_id 5.
func (u *Update) decodeSlot(message []byte) error {
	m := reader{rest: message}
	for m.next() {
		switch m.number {
		case 1:
			number(&m, &u.Slot)
		case 3:
			number(&m, &u.Status)
		case 5:
			number(&m, &u.Bank)
		}
	}
	return m.err
}

// decodeMeta reads SubscribeUpdateBlockMeta: slot 1, blockhash 2, rewards 3, block_time 4
// {timestamp 1}, block_height 5 {block_height 1}, parent_slot 6, parent_blockhash 7,
// executed_transaction_count 8, entries_count 9, bank_id 10.
func (u *Update) decodeMeta(message []byte) error {
	h := &u.Head
	m := reader{rest: message}
	for m.next() {
		switch m.number {
		case 1:
			number(&m, &u.Slot)
		case 2:
			m.hash(&h.Hash)
		case 4:
			h.Time = optional[int64](&m)
		case 5:
			h.Height = optional[uint64](&m)
		case 6:
			number(&m, &h.ParentSlot)
		case 7:
			h.ParentHash.Known = true
			m.hash(&h.ParentHash.Value)
		case 8:
			number(&m, &h.Transactions)
		case 10:
			number(&m, &u.Bank)
		}
	}
	switch {
	case m.err != nil:
		return m.err
	case h.Hash == (ledger.Hash{}):
		return errors.New("it has no hash")
	case h.ParentSlot >= u.Slot && u.Slot != 0:
		return fmt.Errorf("block %d names slot %d as its parent", u.Slot, h.ParentSlot)
	}
	return nil
}
