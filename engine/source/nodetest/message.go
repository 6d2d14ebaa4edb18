package nodetest

import (
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
type messageKind = protowire.Number

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
	kind   messageKind
	block  *ledger.Block // of which it tells
	status slotStatus

	write        *ledger.AccountWrite
	writeVersion uint64

	tx *ledger.Transaction
}

// Wire is a protobuf message that grows field by field.
type Wire []byte

func (w Wire) Number(field protowire.Number, v uint64) Wire {
	return protowire.AppendVarint(protowire.AppendTag(w, field, protowire.VarintType), v)
}

// Bytes appends one field for each of some values.
func (w Wire) Bytes(field protowire.Number, values ...[]byte) Wire {
	for _, b := range values {
		w = protowire.AppendBytes(protowire.AppendTag(w, field, protowire.BytesType), b)
	}
	return w
}

// nonzero appends a number as proto3 does: zero is left out.
func (w Wire) nonzero(field protowire.Number, v uint64) Wire {
	if v == 0 {
		return w
	}
	return w.Number(field, v)
}

// Updates as a script tells them, without the name of a filter and a time.

// Ping returns what the server sends each ten seconds.
func Ping() Wire { return Wire(nil).Bytes(pingMessage, nil) }

// StatusUpdate tells what became of a slot, by the number of the status.
func StatusUpdate[S ~uint64](slot ledger.Slot, status S) Wire {
	return (&message{kind: slotMessage, block: &ledger.Block{Slot: slot}, status: slotStatus(status)}).update()
}

// AccountUpdate tells how a block left an account.
func AccountUpdate(slot ledger.Slot, w ledger.AccountWrite, version uint64) Wire {
	return (&message{kind: accountMessage, block: &ledger.Block{Slot: slot}, write: &w, writeVersion: version}).update()
}

// TransactionUpdate tells a transaction, and HeadUpdate the head of a block.
func TransactionUpdate(tx *ledger.Transaction) Wire {
	return (&message{kind: transactionMessage, block: &ledger.Block{Slot: tx.Slot}, tx: tx}).update()
}

func HeadUpdate(b *ledger.Block) Wire { return (&message{kind: metaMessage, block: b}).update() }

func (m *message) update() Wire { return Wire(nil).Bytes(m.kind, m.part(nil)) }

// part spells what the message tells, as far as sources read it, and some of what they do not. Package geyser reads a recorded stream,
// in which there is more.
func (m *message) part(slices []slice) Wire {
	b, slot := m.block, uint64(m.block.Slot)
	switch m.kind {
	case accountMessage:
		a := m.write
		info := Wire(nil).Bytes(1, a.Pubkey[:]).nonzero(2, uint64(a.Lamports)).Bytes(3, a.Owner[:])
		if a.Executable {
			info = info.Number(4, 1)
		}
		info = info.nonzero(5, a.RentEpoch).Bytes(6, cut(accountData(a), slices)).nonzero(7, m.writeVersion)
		return Wire(nil).Bytes(1, info).nonzero(2, slot)
	case slotMessage:
		w := Wire(nil).nonzero(1, slot).Number(2, uint64(b.ParentSlot)).nonzero(3, uint64(m.status))
		if m.status == slotDead {
			w = w.Bytes(4, []byte("block failed: invalid transaction"))
		}
		return w
	case transactionMessage:
		return Wire(nil).Bytes(1, transactionInfo(m.tx)).nonzero(2, slot)
	}
	w := Wire(nil).nonzero(1, slot).Bytes(2, b.Blockhash.AppendBase58(nil)).Bytes(3, nil)
	w = w.Bytes(4, Wire(nil).nonzero(1, uint64(b.Time.Value))).Bytes(5, Wire(nil).nonzero(1, b.Height.Value))
	w = w.nonzero(6, uint64(b.ParentSlot)).Bytes(7, b.PreviousBlockhash.Value.AppendBase58(nil))
	return w.nonzero(8, uint64(len(b.Transactions))).Number(9, 64)
}

// transactionInfo spells SubscribeUpdateTransactionInfo: signature 1, transaction 3 {signatures 1, message 2 {header 1, account_keys 2}},
// meta 4 {err 1, fee 2, loaded_writable_addresses 12, loaded_readonly_addresses 13}, index 5.
func transactionInfo(tx *ledger.Transaction) Wire {
	static, writable, readonly, _ := split(tx)
	meta := Wire(nil)
	if !tx.Success.Value {
		meta = meta.Bytes(1, Wire(nil).Bytes(1, []byte{8, 0, 0, 0, 0, 25, 1, 0, 0, 0}))
	}
	meta = meta.nonzero(2, uint64(tx.Fee.Value)).Bytes(12, keysOf(writable)...).Bytes(13, keysOf(readonly)...)
	body := Wire(nil).Bytes(1, Wire(nil).Number(1, 1)).Bytes(2, keysOf(static)...)
	signed := Wire(nil).Bytes(1, tx.Signature[:]).Bytes(2, body)
	return Wire(nil).Bytes(1, tx.Signature[:]).Bytes(3, signed).Bytes(4, meta).nonzero(5, uint64(tx.Index))
}

func keysOf(keys []ledger.Pubkey) (all [][]byte) {
	for i := range keys {
		all = append(all, keys[i][:])
	}
	return all
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
