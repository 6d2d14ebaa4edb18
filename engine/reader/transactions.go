package reader

import (
	"errors"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/published"
	"ledgerd/engine/sequencer"
	"ledgerd/shard/giveway"
	"ledgerd/shard/txstore"
)

// Transaction returns the transaction with the signature, or a *ledger.NotFoundError. A query with a Wait and no MinSlot waits that
// long for a transaction that is not held at its commitment.
func (r *Reader) Transaction(q ledger.Query, sig ledger.Signature) (a ledger.TransactionAnswer, v ledger.View, err error) {
	ask := func(v ledger.View, _ time.Time) (a ledger.TransactionAnswer, err error) {
		a.Transaction, err = r.transaction(v, sig)
		if err == nil {
			a.Commitment = v.Head.CommitmentOf(a.Transaction.Slot)
		}
		return a, err
	}
	if q.Wait <= 0 || q.MinSlot > 0 || q.Head != nil {
		return answer(r, q, ask)
	}
	published.Await(r.Board, time.After(q.Wait), func() bool {
		a, v, err = answer(r, q, ask)
		return !errors.Is(err, ledger.ErrNotFound)
	})
	return a, v, err
}

func (r *Reader) transaction(v ledger.View, sig ledger.Signature) (*ledger.Transaction, error) {
	blocks := blocksOf(v)
	t := r.Stored.Transaction(&sig, func(b *txstore.Block) bool {
		i := sequencer.FirstFrom(blocks, b.Block.Slot)
		return i < len(blocks) && blocks[i] == b
	})
	switch {
	case t != nil:
		return t, nil
	case r.coverage.Load().SkipVotes:
		return nil, &ledger.NotFoundError{Absence: ledger.TransactionNotIndexed}
	}
	return nil, &ledger.NotFoundError{Absence: ledger.TransactionNotFound}
}

// Transactions returns a page of the transactions in a range. If a bound is not held, or an address of which neither a
// transaction nor an account is held, it returns a *ledger.NotFoundError.
func (r *Reader) Transactions(q ledger.Query, in ledger.TransactionRange) (ledger.TransactionPage, ledger.View, error) {
	return answer(r, q, func(v ledger.View, deadline time.Time) (ledger.TransactionPage, error) {
		p, err := r.transactions(v, in)
		if err == nil && len(p.Transactions) == 0 && in.Address.Known && !p.Next.Known { // else older ones may name it
			err = r.knowsAddress(v, in, deadline)
		}
		return p, err
	})
}

// knowsAddress returns nil if a transaction that names the address of a range in which none does is held, or may be, or an account
// at the address; otherwise a *ledger.NotFoundError.
func (r *Reader) knowsAddress(v ledger.View, in ledger.TransactionRange, deadline time.Time) error {
	key, all := in.Address.Value, ledger.TransactionRange{Address: in.Address, Limit: 1}
	if in.Limit, in.OldestFirst = 1, false; in != all { // transactions outside of the range are not looked through yet
		if found, err := r.transactions(v, all); err != nil || len(found.Transactions) > 0 || found.Next.Known {
			return err
		}
	}
	a, found, err := r.ownerOf(&key).Account(key, v.Tip().Version, deadline)
	if err != nil {
		return err
	}
	return r.absence(v, &a, found)
}

// transactions walks over the blocks of a range and takes the transactions that are wanted.
func (r *Reader) transactions(v ledger.View, in ledger.TransactionRange) (ledger.TransactionPage, error) {
	w := walk{TransactionRange: in, wanted: txstore.Wanted{Success: in.Success}}
	w.page.HistoryFrom = v.Head.Floor
	if !v.Head.HasBlock {
		w.page.HistoryFrom = v.Tip().Slot + 1
	}
	var err error
	if w.before, err = r.bound(v, in.Before); err != nil {
		return w.page, err
	}
	if w.after, err = r.bound(v, in.After); err != nil || !v.Head.HasBlock {
		return w.page, err
	}
	if in.Address.Known {
		if w.wanted.Key = r.Stored.Key(&in.Address.Value); w.wanted.Key == 0 {
			return w.page, nil
		}
	}
	blocks := w.within(blocksOf(v))
	for i := range blocks {
		b := blocks[len(blocks)-1-i]
		if in.OldestFirst {
			b = blocks[i]
		}
		if b.MayHave(w.wanted) && w.look(b) {
			break
		}
	}
	return w.page, nil
}

// bound returns the transaction at an end of a range, nil for an open end.
func (r *Reader) bound(v ledger.View, sig ledger.Opt[ledger.Signature]) (*ledger.Transaction, error) {
	if !sig.Known {
		return nil, nil
	}
	return r.transaction(v, sig.Value)
}

const (
	turnKeys = 1 << 14 // keys that are looked through between two turns of others: some ten microseconds of work
	mostKeys = 1 << 22 // keys that are looked through for one page: some milliseconds
)

// walk collects the transactions of one page, block by block.
type walk struct {
	ledger.TransactionRange
	before, after *ledger.Transaction // nil: an open end
	wanted        txstore.Wanted
	page          ledger.TransactionPage
	keys          int // that were looked through
}

// within returns those of blocks, which are oldest first, that the range reaches into.
func (w *walk) within(blocks []*txstore.Block) []*txstore.Block {
	from := w.FromSlot.Value
	if w.after != nil {
		from = max(from, w.after.Slot)
	}
	blocks = blocks[sequencer.FirstFrom(blocks, from):]
	if w.before != nil {
		blocks = blocks[:sequencer.FirstFrom(blocks, w.before.Slot+1)]
	}
	if w.ToSlot.Known && w.ToSlot.Value+1 > 0 {
		blocks = blocks[:sequencer.FirstFrom(blocks, w.ToSlot.Value+1)]
	}
	return blocks
}

// look takes the transactions of a block that are wanted into the page, and reports whether the page ends in this block.
func (w *walk) look(b *txstore.Block) (ends bool) {
	first, last := 0, b.Len()
	if w.after != nil && b.Block.Slot == w.after.Slot {
		first = int(w.after.Index) + 1
	}
	if w.before != nil && b.Block.Slot == w.before.Slot {
		last = int(w.before.Index)
	}
	had := w.keys
	var found []int
	next := -1 // index of the transaction that the next page begins behind
	for n := range last - first {
		index := last - 1 - n
		if w.OldestFirst {
			index = first + n
		}
		if b.Has(w.wanted, index) {
			if len(w.page.Transactions)+len(found) == w.Limit {
				ends = true // behind the last transaction of the page, whatever its block
				break
			}
			found = append(found, index)
		}
		if w.keys += b.Keys(index); w.keys > mostKeys {
			next, ends = index, true
			break
		}
	}
	some := b.Pick(found)
	for i := range some {
		w.page.Transactions = append(w.page.Transactions, &some[i])
	}
	switch {
	case next >= 0:
		w.page.Next = ledger.Some(b.Signature(next))
	case ends:
		w.page.Next = ledger.Some(w.page.Transactions[w.Limit-1].Signature)
	}
	if w.keys/turnKeys > had/turnKeys {
		giveway.Turn()
	}
	return ends
}
