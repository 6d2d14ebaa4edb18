package yellowstone

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// Kind says what an update tells.
type Kind uint8

const (
	Other       Kind = iota // nothing that we need
	Account                 // a write of an account
	Slot                    // a status of a slot
	Transaction             // a transaction of a block
	Meta                    // the head of a block
	Ping                    // the server wants to hear of us
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
	Startup      bool   // the account as it stood when the validator started, and no write

	// Of Transaction.
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

// field is one field of a protobuf message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64 // of a varint
	bytes  []byte // of what has a length; a part of the message
}

// eachField visits the fields of a message in order. Fixed-size fields and groups have no
// value: nothing that we read is one.
func eachField(message []byte, visit func(field) error) error {
	for len(message) > 0 {
		f := field{}
		var n int
		if f.number, f.kind, n = protowire.ConsumeTag(message); n < 0 {
			return errField
		}
		message = message[n:]
		switch f.kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.Fixed32Type, protowire.Fixed64Type:
			n = protowire.ConsumeFieldValue(f.number, f.kind, message)
		default: // groups, which proto3 does not have
			n = -1
		}
		if n < 0 {
			return errField
		}
		message = message[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// Decoder reads messages. The zero value reads those of a subscription that asked for whole data.
type Decoder struct {
	// Sliced says that the subscription asked for the slices of data that [DataSlices] names.
	Sliced bool
}

// Decode reads one message of a subscription that asked for whole data.
func Decode(message []byte, u *Update) error { return Decoder{}.Decode(message, u) }

// Decode reads one SubscribeUpdate: account 2, slot 3, transaction 4, block 5, ping 6,
// block_meta 7, entry 8, pong 9, transaction_status 10, of which the last one counts. What the
// update holds of it is copied. An error says what is wrong with the message; u is worth
// nothing then.
func (d Decoder) Decode(message []byte, u *Update) error {
	*u = Update{}
	return eachField(message, func(f field) error {
		if f.number < 2 || f.number > 10 {
			return nil // filters, created_at
		}
		if f.kind != protowire.BytesType {
			return errField
		}
		*u = Update{}
		switch f.number {
		case 2:
			u.Kind = Account
			return u.decodeAccount(f.bytes, d.Sliced)
		case 3:
			u.Kind = Slot
			return u.decodeSlot(f.bytes)
		case 4:
			u.Kind = Transaction
			return u.decodeTransaction(f.bytes)
		case 6:
			u.Kind = Ping
		case 7:
			u.Kind = Meta
			return u.decodeMeta(f.bytes)
		}
		return nil
	})
}

// decodeSlot reads SubscribeUpdateSlot: slot 1, parent 2, status 3, dead_error 4, bank_id 5.
func (u *Update) decodeSlot(message []byte) error {
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			return f.number64((*uint64)(&u.Slot))
		case 3:
			return f.number64((*uint64)(&u.Status))
		case 5:
			return f.number64(&u.Bank)
		}
		return nil
	})
	return explain("a slot's status", err)
}

// decodeMeta reads SubscribeUpdateBlockMeta: slot 1, blockhash 2, rewards 3, block_time 4
// {timestamp 1}, block_height 5 {block_height 1}, parent_slot 6, parent_blockhash 7,
// executed_transaction_count 8, entries_count 9, bank_id 10.
func (u *Update) decodeMeta(message []byte) error {
	h := &u.Head
	var hasHash bool
	err := eachField(message, func(f field) (err error) {
		switch f.number {
		case 1:
			return f.number64((*uint64)(&u.Slot))
		case 2:
			hasHash = true
			return f.hash(&h.Hash)
		case 4:
			h.Time, err = optional(f, func(v uint64) int64 { return int64(v) })
			return err
		case 5:
			h.Height, err = optional(f, func(v uint64) uint64 { return v })
			return err
		case 6:
			return f.number64((*uint64)(&h.ParentSlot))
		case 7:
			h.ParentHash.Known = true
			return f.hash(&h.ParentHash.Value)
		case 8:
			return f.number64(&h.Transactions)
		case 10:
			return f.number64(&u.Bank)
		}
		return nil
	})
	switch {
	case err == nil && !hasHash:
		err = errors.New("it has no hash")
	case err == nil && h.ParentSlot >= u.Slot && u.Slot != 0:
		err = fmt.Errorf("block %d names slot %d as its parent", u.Slot, h.ParentSlot)
	}
	return explain("a block's head", err)
}

// explain says what an error is about; nil stays nil.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// number64 reads a number.
func (f field) number64(to *uint64) error {
	if f.kind != protowire.VarintType {
		return errField
	}
	*to = f.value
	return nil
}

// boolean reads a number that is not zero as true.
func (f field) boolean(to *bool) error {
	var v uint64
	err := f.number64(&v)
	*to = v != 0
	return err
}

// part reads a message within the message, or bytes.
func (f field) part(to *[]byte) error {
	if f.kind != protowire.BytesType {
		return errField
	}
	*to = f.bytes
	return nil
}

// key reads 32 bytes.
func (f field) key(to *ledger.Pubkey) error {
	if f.kind != protowire.BytesType || len(f.bytes) != len(to) {
		return fmt.Errorf("a key has %d bytes", len(f.bytes))
	}
	copy(to[:], f.bytes)
	return nil
}

// hash reads a hash in base58.
func (f field) hash(to *ledger.Hash) (err error) {
	const longest = 44 // 32 bytes in base58
	if f.kind != protowire.BytesType || len(f.bytes) > longest {
		return errors.New("a hash is not base58")
	}
	if *to, err = ledger.ParseHash(f.bytes); err != nil {
		return errors.New("a hash is not base58")
	}
	return nil
}

// optional reads a message around a number, of which zero is left out.
func optional[T any](f field, as func(uint64) T) (ledger.Opt[T], error) {
	if f.kind != protowire.BytesType {
		return ledger.Opt[T]{}, errField
	}
	var v uint64
	err := eachField(f.bytes, func(f field) error {
		if f.number == 1 {
			return f.number64(&v)
		}
		return nil
	})
	return ledger.Some(as(v)), err
}
