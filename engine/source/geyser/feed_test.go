package geyser

import (
	"bytes"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodetest"
	"ledgerd/engine/source/yellowstone"
)

// part is a message.
type part = nodetest.Wire

func hashOf(slot ledger.Slot, fork byte) ledger.Hash {
	return ledger.Hash{byte(slot >> 8), byte(slot), fork}
}
func keyOf(n byte) ledger.Pubkey { return ledger.Pubkey{n, 0xaa} }

func slotUpdate(slot ledger.Slot, status yellowstone.SlotStatus) part {
	return nodetest.StatusUpdate(slot, status)
}

func accountUpdate(slot ledger.Slot, key, owner ledger.Pubkey, lamports ledger.Lamports, version uint64) part {
	return nodetest.AccountUpdate(slot, ledger.AccountWrite{Pubkey: key, Owner: owner, Lamports: lamports}, version)
}

// block is a block as the fake node tells of it: two writes and a transaction.
type block struct {
	slot, parent     ledger.Slot
	fork, parentFork byte
}

func (b block) block() *ledger.Block {
	told := &ledger.Block{
		Slot: b.slot, ParentSlot: b.parent, Blockhash: hashOf(b.slot, b.fork), PreviousBlockhash: ledger.Some(hashOf(b.parent, b.parentFork)),
	}
	told.AddTransaction(ledger.Transaction{Signature: ledger.Signature{byte(b.slot)}, Accounts: []ledger.Pubkey{keyOf(1)}, Success: ledger.Some(true)})
	return told
}

func (b block) head() part        { return nodetest.HeadUpdate(b.block()) }
func (b block) transaction() part { return nodetest.TransactionUpdate(&b.block().Transactions[0]) }

// messages tell all of the block up to its being processed.
func (b block) messages() []part {
	return []part{
		slotUpdate(b.slot, yellowstone.CreatedBank),
		accountUpdate(b.slot, keyOf(1), keyOf(9), ledger.Lamports(b.slot), uint64(b.slot)*10),
		accountUpdate(b.slot, keyOf(byte(b.slot)), keyOf(9), ledger.Lamports(b.slot), uint64(b.slot)*10+1),
		b.transaction(),
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
	return slices.Concat([]part{nodetest.Ping()}, frozen(from, at-1, at-1), straight(at, tip)[middle:])
}

// lagging is connected while what the plugin keeps lags behind what it tells (grpc.rs, geyser_loop and block_reconstruction_loop, since
// version 16): the block before at was told to others alone, is not kept yet, and so its head and its being processed come new.
func lagging(from, at, tip ledger.Slot, middle int) []part {
	before := straight(at-1, at-1)
	return slices.Concat([]part{nodetest.Ping()}, frozen(from, at-2, at-2), before[4:], straight(at, tip)[middle:])
}

// replaced returns messages with others in the place of one.
func replaced(all []part, one part, by ...part) []part {
	i := slices.IndexFunc(all, func(p part) bool { return bytes.Equal(p, one) })
	return slices.Replace(all, i, i+1, by...)
}
