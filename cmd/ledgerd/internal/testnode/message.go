package testnode

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// slotStatus is a status of a slot as Yellowstone numbers them.
type slotStatus uint64

const (
	slotProcessed slotStatus = iota
	slotConfirmed
	slotFinalized
	slotFirstShred
	slotCompleted
	slotCreatedBank
	slotDead
)

// messageKind says what a message tells; the number is its field in SubscribeUpdate.
type messageKind protowire.Number

const (
	accountMessage     messageKind = 2
	slotMessage        messageKind = 3
	transactionMessage messageKind = 4
	pingMessage        messageKind = 6
	metaMessage        messageKind = 7
	pongMessage        messageKind = 9
)

// message is one update before it is encoded for a subscriber. It does not change once it is told.
type message struct {
	kind messageKind
	slot ledger.Slot

	write        *ledger.AccountWrite // of an account
	writeVersion uint64
	signature    *ledger.Signature // of the transaction that wrote it, nil for none

	tx    *ledger.Transaction
	block *ledger.Block // of block meta, and of the transaction

	status slotStatus
	parent ledger.Slot
	reason string // why a slot is dead
}

// wire is a protobuf message that grows field by field.
type wire []byte

func (w wire) number(field protowire.Number, v uint64) wire {
	return protowire.AppendVarint(protowire.AppendTag(w, field, protowire.VarintType), v)
}

func (w wire) bytes(field protowire.Number, b []byte) wire {
	return protowire.AppendBytes(protowire.AppendTag(w, field, protowire.BytesType), b)
}

// nonzero appends a number as proto3 does: zero is left out.
func (w wire) nonzero(field protowire.Number, v uint64) wire {
	if v == 0 {
		return w
	}
	return w.number(field, v)
}

// slice is a part of an account's data that a subscriber asked for.
type slice struct{ Offset, Length uint64 }

// encode returns the update as a server writes it: the name of the filter it passed, "" for none, the part, and
// when it was made.
func (m *message) encode(filter string, slices []slice, at time.Time) []byte {
	w := wire{}
	if filter != "" {
		w = w.bytes(1, []byte(filter))
	}
	w = w.bytes(protowire.Number(m.kind), m.part(slices))
	return w.bytes(11, wire(nil).nonzero(1, uint64(at.Unix())).nonzero(2, uint64(at.Nanosecond())))
}

// part spells what the message tells.
func (m *message) part(slices []slice) wire {
	switch m.kind {
	case accountMessage:
		return m.account(slices)
	case slotMessage:
		w := wire(nil).nonzero(1, uint64(m.slot)).number(2, uint64(m.parent)).nonzero(3, uint64(m.status))
		if m.reason != "" {
			w = w.bytes(4, []byte(m.reason))
		}
		return w
	case transactionMessage:
		return wire(nil).bytes(1, m.transaction()).nonzero(2, uint64(m.slot))
	case metaMessage:
		return m.meta()
	case pongMessage:
		return wire(nil).nonzero(1, uint64(m.slot))
	}
	return nil
}

// account spells SubscribeUpdateAccount.
func (m *message) account(slices []slice) wire {
	a := m.write
	info := wire(nil).bytes(1, a.Pubkey[:]).nonzero(2, uint64(a.Lamports)).bytes(3, a.Owner[:])
	if a.Executable {
		info = info.number(4, 1)
	}
	info = info.nonzero(5, a.RentEpoch).bytes(6, cut(accountData(a), slices)).nonzero(7, m.writeVersion)
	if m.signature != nil {
		info = info.bytes(8, m.signature[:])
	}
	return wire(nil).bytes(1, info).nonzero(2, uint64(m.slot))
}

// cut returns the slices of data, one after the other; all of it where none are asked for. A slice that
// reaches beyond the data is left out whole, as Yellowstone does.
func cut(data []byte, slices []slice) []byte {
	if len(slices) == 0 {
		return data
	}
	var out []byte
	for _, s := range slices {
		if uint64(len(data)) >= s.Offset+s.Length {
			out = append(out, data[s.Offset:s.Offset+s.Length]...)
		}
	}
	return out
}

// meta spells SubscribeUpdateBlockMeta.
func (m *message) meta() wire {
	b := m.block
	w := wire(nil).nonzero(1, uint64(b.Slot)).bytes(2, b.Blockhash.AppendBase58(nil)).bytes(3, nil)
	w = w.bytes(4, wire(nil).nonzero(1, uint64(b.Time.Value))).bytes(5, wire(nil).nonzero(1, b.Height.Value))
	w = w.nonzero(6, uint64(b.ParentSlot)).bytes(7, b.PreviousBlockhash.Value.AppendBase58(nil))
	return w.nonzero(8, uint64(len(b.Transactions))).number(9, 64)
}

// transaction spells SubscribeUpdateTransactionInfo as far as sources read it: signature 1, is_vote 2, transaction 3
// {signatures 1, message 2 {header 1, account_keys 2}}, meta 4 {err 1, fee 2, loaded_writable_addresses 12,
// loaded_readonly_addresses 13}, index 5. Package geyser reads a recorded stream, in which there is more.
func (m *message) transaction() wire {
	tx := m.tx
	static, writable, readonly, _ := split(tx)
	body := wire(nil).bytes(1, wire(nil).number(1, 1))
	for _, k := range static {
		body = body.bytes(2, k[:])
	}
	meta := wire(nil)
	if !tx.Success.Value {
		meta = meta.bytes(1, wire(nil).bytes(1, []byte{8, 0, 0, 0, 0, 25, 1, 0, 0, 0}))
	}
	meta = meta.nonzero(2, uint64(tx.Fee.Value))
	for _, k := range writable {
		meta = meta.bytes(12, k[:])
	}
	for _, k := range readonly {
		meta = meta.bytes(13, k[:])
	}
	info := wire(nil).bytes(1, tx.Signature[:])
	if isVote(tx) {
		info = info.number(2, 1)
	}
	return info.bytes(3, wire(nil).bytes(1, tx.Signature[:]).bytes(2, body)).bytes(4, meta).nonzero(5, uint64(tx.Index))
}
