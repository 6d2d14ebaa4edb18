package geyser

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/yellowstone"
)

// part is a message under construction.
type part []byte

func (p part) number(field protowire.Number, v uint64) part { return appendNumber(p, field, v) }
func (p part) bytes(field protowire.Number, b []byte) part  { return appendPart(p, field, b) }

func hashOf(slot ledger.Slot, fork byte) ledger.Hash {
	return ledger.Hash{byte(slot >> 8), byte(slot), fork}
}
func keyOf(n byte) ledger.Pubkey { return ledger.Pubkey{n, 0xaa} }

var ping = part(nil).bytes(6, nil)

func slotUpdate(slot ledger.Slot, status yellowstone.SlotStatus) part {
	return part(nil).bytes(3, part(nil).number(1, uint64(slot)).number(3, uint64(status)))
}

func accountUpdate(slot ledger.Slot, key, owner ledger.Pubkey, lamports, version uint64, data []byte) part {
	info := part(nil).bytes(1, key[:]).number(2, lamports).bytes(3, owner[:]).number(7, version)
	if data != nil {
		info = info.bytes(6, data)
	}
	return part(nil).bytes(2, part(nil).bytes(1, info).number(2, uint64(slot)))
}

func transactionUpdate(slot ledger.Slot, index uint64, keys ...ledger.Pubkey) part {
	signature := make([]byte, 64)
	signature[0], signature[1], signature[2] = byte(slot), byte(index), byte(index>>8)
	message := part(nil)
	for _, key := range keys {
		message = message.bytes(2, key[:])
	}
	body := part(nil).bytes(1, signature).bytes(2, message)
	info := part(nil).bytes(1, signature).bytes(3, body).bytes(4, part(nil).number(2, 5000)).number(5, index)
	return part(nil).bytes(4, part(nil).bytes(1, info).number(2, uint64(slot)))
}

func headUpdate(slot, parent ledger.Slot, hash, parentHash ledger.Hash, transactions uint64) part {
	meta := part(nil).number(1, uint64(slot)).bytes(2, hash.AppendBase58(nil)).number(6, uint64(parent)).
		bytes(7, parentHash.AppendBase58(nil)).number(8, transactions)
	return part(nil).bytes(7, meta)
}

// block is a block as the fake node tells of it: two writes and a transaction.
type block struct {
	slot, parent     ledger.Slot
	fork, parentFork byte
}

func (b block) head() part {
	return headUpdate(b.slot, b.parent, hashOf(b.slot, b.fork), hashOf(b.parent, b.parentFork), 1)
}

// messages tell all of the block up to its being processed.
func (b block) messages() []part {
	return []part{
		slotUpdate(b.slot, yellowstone.CreatedBank),
		accountUpdate(b.slot, keyOf(1), keyOf(9), uint64(b.slot), uint64(b.slot)*10, nil),
		accountUpdate(b.slot, keyOf(byte(b.slot)), keyOf(9), uint64(b.slot), uint64(b.slot)*10+1, nil),
		transactionUpdate(b.slot, 0, keyOf(1)),
		b.head(),
		slotUpdate(b.slot, yellowstone.Processed),
	}
}

// straight returns the messages of blocks from one slot to another, each confirmed by the next one's
// time and finalized three slots later.
func straight(from, to ledger.Slot) (all []part) {
	for slot := from; slot <= to; slot++ {
		all = append(all, block{slot: slot, parent: slot - 1}.messages()...)
		all = append(all, slotUpdate(slot-1, yellowstone.Confirmed), slotUpdate(slot-4, yellowstone.Finalized))
	}
	return all
}

// frozen returns what Yellowstone's plugin replays of blocks of straight from one slot to another, since version 15.1 (grpc.rs
// there, where it answers a request with from_slot; block_reconstruction.rs for what it keeps): of each block that is
// frozen its content, its head and then its statuses, but none of its begin.
func frozen(from, to, tip ledger.Slot) (all []part) {
	for slot := from; slot <= to; slot++ {
		all = append(all, block{slot: slot, parent: slot - 1}.messages()[1:]...)
		if slot < tip {
			all = append(all, slotUpdate(slot, yellowstone.Confirmed))
		}
		if slot+4 <= tip {
			all = append(all, slotUpdate(slot, yellowstone.Finalized))
		}
	}
	return all
}

// connected returns what the plugin shows at first of a call that wants a replay: a ping, what is frozen, and what is new from
// the middle of a block on, since it drops what comes before it knows the filter (grpc.rs, client_loop). A block has six messages.
func connected(from, at, tip ledger.Slot, middle int) []part {
	return slices.Concat([]part{ping}, frozen(from, at-1, at-1), straight(at, tip)[middle:])
}

// replaced returns messages with others in the place of one.
func replaced(all []part, one part, by ...part) []part {
	i := slices.IndexFunc(all, func(p part) bool { return bytes.Equal(p, one) })
	return slices.Replace(all, i, i+1, by...)
}
