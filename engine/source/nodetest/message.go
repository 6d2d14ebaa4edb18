package nodetest

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
	statusMessage      messageKind = 10 // of a transaction
	pongMessage        messageKind = 9
)

// message is one update before it is encoded for a subscriber. It does not change once it is told.
type message struct {
	kind messageKind
	slot ledger.Slot

	write        *ledger.AccountWrite // of an account
	writeVersion uint64

	tx    *ledger.Transaction
	block *ledger.Block // of block meta, and of the transaction

	status slotStatus
	parent ledger.Slot
	reason string // why a slot is dead
}

// Wire is a protobuf message that grows field by field.
type Wire []byte

func (w Wire) Number(field protowire.Number, v uint64) Wire {
	return protowire.AppendVarint(protowire.AppendTag(w, field, protowire.VarintType), v)
}

func (w Wire) Bytes(field protowire.Number, b []byte) Wire {
	return protowire.AppendBytes(protowire.AppendTag(w, field, protowire.BytesType), b)
}

// nonzero appends a number as proto3 does: zero is left out.
func (w Wire) nonzero(field protowire.Number, v uint64) Wire {
	if v == 0 {
		return w
	}
	return w.Number(field, v)
}

// slice is a part of an account's data that a subscriber asked for.
type slice struct{ Offset, Length uint64 }

// encode returns the update as a server writes it: the name of the filter it passed, "" for none, the part, and
// when it was made.
func (m *message) encode(filter string, slices []slice, at time.Time) []byte {
	w := Wire{}
	if filter != "" {
		w = w.Bytes(1, []byte(filter))
	}
	w = w.Bytes(protowire.Number(m.kind), m.part(slices))
	return w.Bytes(11, Wire(nil).nonzero(1, uint64(at.Unix())).nonzero(2, uint64(at.Nanosecond())))
}

// Updates as a script tells them, without the name of a filter and a time.

// Ping returns what the server sends each ten seconds.
func Ping() Wire { return (&message{kind: pingMessage}).update() }

// StatusUpdate tells what became of a slot, by the number of the status.
func StatusUpdate[S ~uint64](slot ledger.Slot, status S) Wire {
	return (&message{kind: slotMessage, slot: slot, status: slotStatus(status)}).update()
}

// AccountUpdate tells how a block left an account.
func AccountUpdate(slot ledger.Slot, w ledger.AccountWrite, version uint64) Wire {
	return (&message{kind: accountMessage, slot: slot, write: &w, writeVersion: version}).update()
}

// TransactionUpdate tells a transaction, and HeadUpdate the head of a block.
func TransactionUpdate(tx *ledger.Transaction) Wire {
	return (&message{kind: transactionMessage, slot: tx.Slot, tx: tx}).update()
}

func HeadUpdate(b *ledger.Block) Wire { return (&message{kind: metaMessage, block: b}).update() }

func (m *message) update() Wire { return Wire(nil).Bytes(protowire.Number(m.kind), m.part(nil)) }

// part spells what the message tells.
func (m *message) part(slices []slice) Wire {
	switch m.kind {
	case accountMessage:
		return m.account(slices)
	case slotMessage:
		w := Wire(nil).nonzero(1, uint64(m.slot)).Number(2, uint64(m.parent)).nonzero(3, uint64(m.status))
		if m.reason != "" {
			w = w.Bytes(4, []byte(m.reason))
		}
		return w
	case transactionMessage:
		return Wire(nil).Bytes(1, m.transaction()).nonzero(2, uint64(m.slot))
	case metaMessage:
		return m.meta()
	case pongMessage:
		return Wire(nil).nonzero(1, uint64(m.slot))
	}
	return nil
}

// account spells SubscribeUpdateAccount.
func (m *message) account(slices []slice) Wire {
	a := m.write
	info := Wire(nil).Bytes(1, a.Pubkey[:]).nonzero(2, uint64(a.Lamports)).Bytes(3, a.Owner[:])
	if a.Executable {
		info = info.Number(4, 1)
	}
	info = info.nonzero(5, a.RentEpoch).Bytes(6, cut(accountData(a), slices)).nonzero(7, m.writeVersion)
	return Wire(nil).Bytes(1, info).nonzero(2, uint64(m.slot))
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
func (m *message) meta() Wire {
	b := m.block
	w := Wire(nil).nonzero(1, uint64(b.Slot)).Bytes(2, b.Blockhash.AppendBase58(nil)).Bytes(3, nil)
	w = w.Bytes(4, Wire(nil).nonzero(1, uint64(b.Time.Value))).Bytes(5, Wire(nil).nonzero(1, b.Height.Value))
	w = w.nonzero(6, uint64(b.ParentSlot)).Bytes(7, b.PreviousBlockhash.Value.AppendBase58(nil))
	return w.nonzero(8, uint64(len(b.Transactions))).Number(9, 64)
}

// transaction spells SubscribeUpdateTransactionInfo as far as sources read it: signature 1, transaction 3
// {signatures 1, message 2 {header 1, account_keys 2}}, meta 4 {err 1, fee 2, loaded_writable_addresses 12,
// loaded_readonly_addresses 13}, index 5. Package geyser reads a recorded stream, in which there is more.
func (m *message) transaction() Wire {
	tx := m.tx
	static, writable, readonly, _ := split(tx)
	body := Wire(nil).Bytes(1, Wire(nil).Number(1, 1))
	for _, k := range static {
		body = body.Bytes(2, k[:])
	}
	meta := Wire(nil)
	if !tx.Success.Value {
		meta = meta.Bytes(1, Wire(nil).Bytes(1, []byte{8, 0, 0, 0, 0, 25, 1, 0, 0, 0}))
	}
	meta = meta.nonzero(2, uint64(tx.Fee.Value))
	for _, k := range writable {
		meta = meta.Bytes(12, k[:])
	}
	for _, k := range readonly {
		meta = meta.Bytes(13, k[:])
	}
	info := Wire(nil).Bytes(1, tx.Signature[:])
	return info.Bytes(3, Wire(nil).Bytes(1, tx.Signature[:]).Bytes(2, body)).Bytes(4, meta).nonzero(5, uint64(tx.Index))
}
