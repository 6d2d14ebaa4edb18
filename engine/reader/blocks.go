package reader

import (
	"errors"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// LatestBlock returns the newest block of the query's commitment.
func (r *Reader) LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error) {
	return answer(r, q, func(v ledger.View, deadline time.Time) (ledger.BlockAnswer, error) {
		if !v.Head.HasBlock {
			return ledger.BlockAnswer{}, &ledger.NotFoundError{Absence: ledger.NoBlockYet}
		}
		return r.blockAt(v, v.Tip().Slot, q, deadline)
	})
}

// Block returns the block at slot. For a missing one it returns a *ledger.NotFoundError that distinguishes
// skipped, not yet produced, pruned and not indexed.
func (r *Reader) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	return answer(r, q, func(v ledger.View, deadline time.Time) (ledger.BlockAnswer, error) {
		return r.blockAt(v, slot, q, deadline)
	})
}

func absent(why ledger.Absence) (ledger.BlockAnswer, error) {
	return ledger.BlockAnswer{}, &ledger.NotFoundError{Absence: why}
}

func (r *Reader) blockAt(v ledger.View, slot ledger.Slot, q ledger.Query, deadline time.Time) (ledger.BlockAnswer, error) {
	switch {
	case !v.Head.HasSlot() || slot > v.Tip().Slot:
		return absent(ledger.SlotNotYetProduced)
	case slot < v.Head.Root || !v.Head.HasBlock:
		return absent(ledger.SlotNotIndexed)
	case slot < v.Head.Floor:
		return r.archived(v, slot, asker(q, deadline))
	}
	blocks := blocksOf(v)
	i := blocks.FirstFrom(slot)
	switch {
	case i == len(blocks):
		return absent(ledger.SlotNotIndexed)
	case blocks[i].Block.Slot == slot:
		return ledger.BlockAnswer{Block: partsOf(blocks[i], q.Parts), Commitment: v.Head.CommitmentOf(slot)}, nil
	}
	return noBlock(slot, blocks[i].Block)
}

// Slots returns the slots from one to another, both included, that have blocks: the oldest of them, at most limit.
func (r *Reader) Slots(q ledger.Query, from, to ledger.Slot, limit int) (ledger.SlotPage, ledger.View, error) {
	return answer(r, q, func(v ledger.View, deadline time.Time) (ledger.SlotPage, error) {
		var p ledger.SlotPage
		if a := r.archive.Load(); a != nil && v.Head.HasBlock && from < v.Head.Floor {
			err := a.Walk(ledger.Opt[ledger.Pubkey]{}, from, min(to, v.Head.Floor-1), true, asker(q, deadline), func(c snapshot.Candidate) (bool, error) {
				p.Slots = append(p.Slots, c.Slot)
				return len(p.Slots) < limit, nil
			})
			if err != nil {
				return ledger.SlotPage{}, err
			}
		}
		if v.Head.HasBlock {
			blocks := blocksOf(v)
			for _, b := range blocks[blocks.FirstFrom(from):] {
				if len(p.Slots) >= limit || b.Block.Slot > to {
					break
				}
				p.Slots = append(p.Slots, b.Block.Slot)
			}
		}
		p.HistoryFrom = r.historyFrom(v)
		return p, nil
	})
}

// noBlock returns the error for a slot at which no block is held; next is the first held block above it.
func noBlock(slot ledger.Slot, next *ledger.Block) (ledger.BlockAnswer, error) {
	if next.ParentSlot < slot { // only the parent link of the next block proves that the slot has no block
		return absent(ledger.SlotSkipped)
	}
	return absent(ledger.SlotNotIndexed)
}

// asker returns the client and the deadline of a question to the archive.
func asker(q ledger.Query, deadline time.Time) snapshot.Asker {
	return snapshot.Asker{Client: q.Client, Deadline: deadline}
}

// archived returns a block that memory does not hold any more.
func (r *Reader) archived(v ledger.View, slot ledger.Slot, by snapshot.Asker) (ledger.BlockAnswer, error) {
	a := r.archive.Load()
	if a == nil || slot < a.First() {
		return absent(ledger.SlotPruned)
	}
	found, err := a.Block(slot, by)
	next := found.Block
	switch {
	case errors.Is(err, snapshot.ErrLost):
		return absent(ledger.SlotNotIndexed)
	case err != nil:
		return ledger.BlockAnswer{}, err
	case next == nil: // the archive has no block at or above the slot
		blocks := blocksOf(v)
		if len(blocks) == 0 { // damage took them
			return absent(ledger.SlotNotIndexed)
		}
		next = blocks[0].Block
	}
	if next.Slot == slot {
		return ledger.BlockAnswer{Block: next, Commitment: v.Head.CommitmentOf(slot)}, nil
	}
	if slot < a.First() { // its file was dropped before the question had its turn
		return absent(ledger.SlotPruned)
	}
	return noBlock(slot, next)
}

// WholeFrom returns the slot from which on no block of the chain is missing, in memory or the archive, up to the tip of a view.
func (r *Reader) WholeFrom(v ledger.View) ledger.Slot {
	from, gap := v.Head.WholeFrom(v.Tip().Slot)
	if gap {
		return from
	}
	return r.archive.Load().From(from)
}

// blocksOf returns the held blocks up to the tip of a view, oldest first.
func blocksOf(v ledger.View) txstore.Chain {
	blocks := sequencer.Blocks(v.Head)
	blocks = blocks[:blocks.FirstFrom(v.Tip().Slot+1)]
	return blocks[blocks.FirstFrom(v.Head.Floor):]
}

// partsOf returns a block with the requested parts of its transactions.
func partsOf(b *txstore.Block, parts ledger.BlockParts) *ledger.Block {
	switch parts {
	case ledger.NoTransactions:
		return b.Block
	case ledger.SignaturesOnly:
		block := *b.Block
		block.Transactions = b.Signatures()
		return &block
	default:
		return b.Whole()
	}
}
