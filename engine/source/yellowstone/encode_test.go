package yellowstone

import (
	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// A message as a server would write it, field by field.
type wire []byte

func (w wire) number(field protowire.Number, v uint64) wire {
	return protowire.AppendVarint(protowire.AppendTag(w, field, protowire.VarintType), v)
}

func (w wire) bytes(field protowire.Number, b []byte) wire {
	return protowire.AppendBytes(protowire.AppendTag(w, field, protowire.BytesType), b)
}

// update wraps a part of SubscribeUpdate as a server does: filters in front, the time behind.
func update(field protowire.Number, part wire) wire {
	return wire(nil).bytes(1, []byte("all")).bytes(field, part).bytes(11, wire(nil).number(1, 1770000000))
}

func accountMessage(slot ledger.Slot, w ledger.AccountWrite, version uint64, data []byte, startup bool) wire {
	info := wire(nil).bytes(1, w.Pubkey[:]).number(2, uint64(w.Lamports)).bytes(3, w.Owner[:])
	if w.Executable {
		info = info.number(4, 1)
	}
	info = info.number(5, w.RentEpoch).bytes(6, data).number(7, version)
	part := wire(nil).bytes(1, info).number(2, uint64(slot))
	if startup {
		part = part.number(3, 1)
	}
	return update(2, part)
}

func slotMessage(slot ledger.Slot, status SlotStatus) wire {
	part := wire(nil).number(1, uint64(slot)).number(2, uint64(slot-1))
	if status != Processed { // zero is left out
		part = part.number(3, uint64(status))
	}
	return update(3, part)
}

func headMessage(slot ledger.Slot, h Head) wire {
	part := wire(nil).number(1, uint64(slot)).bytes(2, h.Hash.AppendBase58(nil)).bytes(3, nil)
	if h.Time.Known {
		part = part.bytes(4, wire(nil).number(1, uint64(h.Time.Value)))
	}
	if h.Height.Known {
		part = part.bytes(5, wire(nil).number(1, h.Height.Value))
	}
	part = part.number(6, uint64(h.ParentSlot))
	if h.ParentHash.Known {
		part = part.bytes(7, h.ParentHash.Value.AppendBase58(nil))
	}
	return update(7, part.number(8, h.Transactions).number(9, 3))
}

// transactionMessage spells a transaction with so many of its accounts loaded, half of them writable.
func transactionMessage(slot ledger.Slot, t ledger.Transaction, loaded int) wire {
	static := len(t.Accounts) - loaded
	message := wire(nil).bytes(1, wire(nil).number(1, 1))
	for _, k := range t.Accounts[:static] {
		message = message.bytes(2, k[:])
	}
	message = message.bytes(3, make([]byte, 32))
	meta := wire(nil)
	if !t.Success.Value {
		meta = meta.bytes(1, wire(nil).bytes(1, []byte{8, 0, 0, 0}))
	}
	meta = meta.number(2, uint64(t.Fee.Value)).bytes(3, []byte{1, 2, 3})
	for i, k := range t.Accounts[static:] {
		if i < loaded/2 {
			meta = meta.bytes(12, k[:])
		} else {
			meta = meta.bytes(13, k[:])
		}
	}
	info := wire(nil).bytes(1, t.Signature[:]).bytes(3, wire(nil).bytes(1, t.Signature[:]).bytes(2, message)).bytes(4, meta)
	if t.Index > 0 {
		info = info.number(5, uint64(t.Index))
	}
	return update(4, wire(nil).bytes(1, info).number(2, uint64(slot)))
}
