package reader

import (
	"errors"
	"math"
	"runtime"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/published"
	"ledgerd/shard/giveway"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// Transaction returns the transaction with the signature, or a *ledger.NotFoundError. A query with a Wait and no MinSlot waits that
// long for a transaction that is not held at its commitment.
func (r *Reader) Transaction(q ledger.Query, sig ledger.Signature) (a ledger.TransactionAnswer, v ledger.View, err error) {
	disk := !q.Recent // no block that is new in the archive was not in memory before
	ask := func(v ledger.View, deadline time.Time) (a ledger.TransactionAnswer, err error) {
		a.Transaction, err = r.transaction(v, sig, disk, asker(q, deadline))
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
		disk = false
		return !errors.Is(err, ledger.ErrNotFound)
	})
	return a, v, err
}

// transaction returns the transaction with a signature. It searches the disk only if disk is true and memory does not have it.
func (r *Reader) transaction(v ledger.View, sig ledger.Signature, disk bool, by snapshot.Asker) (*ledger.Transaction, error) {
	if t := r.inBlocks(blocksOf(v), sig); t != nil {
		return t, nil
	}
	if v.Commitment != ledger.Processed && r.inBlocks(blocksOf(ledger.View{Head: v.Head}), sig) != nil {
		return nil, &ledger.NotFoundError{Absence: ledger.TransactionNotYet}
	}
	a := r.archive.Load()
	if a != nil && disk {
		if t, err := a.Transaction(&sig, v.Head.Floor, by); t != nil || err != nil {
			return t, err
		}
	}
	absence := ledger.TransactionNotFound
	switch {
	case len(a.Stats().Damaged) > 0:
		absence = ledger.TransactionLost
	case r.coverage.Load().SkipVotes:
		absence = ledger.TransactionNotIndexed
	}
	return nil, &ledger.NotFoundError{Absence: absence}
}

// inBlocks returns the transaction with a signature in blocks of a chain, nil if there is none.
func (r *Reader) inBlocks(blocks txstore.Chain, sig ledger.Signature) *ledger.Transaction {
	return r.Stored.Transaction(&sig, func(b *txstore.Block) bool {
		i := blocks.FirstFrom(b.Block.Slot)
		return i < len(blocks) && blocks[i] == b
	})
}

// Transactions returns a page of the transactions in a range. If a bound is not held, or an address of which neither a
// transaction nor an account is held, it returns a *ledger.NotFoundError.
func (r *Reader) Transactions(q ledger.Query, in ledger.TransactionRange) (ledger.TransactionPage, ledger.View, error) {
	return answer(r, q, func(v ledger.View, deadline time.Time) (ledger.TransactionPage, error) {
		by := asker(q, deadline)
		p, err := r.transactions(v, in, by)
		if err == nil && len(p.Transactions) == 0 && in.Address.Known && !p.Next.Known { // else older ones may name it
			err = r.knowsAddress(v, in, by)
		}
		return p, err
	})
}

// knowsAddress returns nil if an account is held at the address of a range in which there is no transaction, or a transaction that names it;
// otherwise a *ledger.NotFoundError.
func (r *Reader) knowsAddress(v ledger.View, in ledger.TransactionRange, by snapshot.Asker) error {
	a, found, err := r.ownerOf(&in.Address.Value).Account(in.Address.Value, v.Tip().Version, by.Deadline)
	if err == nil {
		err = r.absence(v, &a, found)
	}
	if everything := (ledger.TransactionRange{Address: in.Address, Limit: in.Limit, OldestFirst: in.OldestFirst}); in == everything || !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	one, walkErr := r.transactions(v, ledger.TransactionRange{Address: in.Address, Limit: 1}, by)
	if walkErr != nil || len(one.Transactions) > 0 || one.Next.Known { // a transaction that was not examined may name it
		return walkErr
	}
	return err
}

// transactions walks over the blocks of a range and collects the wanted transactions.
func (r *Reader) transactions(v ledger.View, in ledger.TransactionRange, by snapshot.Asker) (ledger.TransactionPage, error) {
	w := walk{TransactionRange: in, wanted: txstore.Wanted{Success: in.Success}}
	if err := r.fill(v, &w, by); err != nil {
		return ledger.TransactionPage{}, err
	}
	w.page.HistoryFrom = r.historyFrom(v) // after the walk, which may have come upon damage
	return w.page, nil
}

// historyFrom returns the slot from which on blocks are held.
func (r *Reader) historyFrom(v ledger.View) ledger.Slot {
	if !v.Head.HasBlock {
		return v.Tip().Slot + 1
	}
	return r.WholeFrom(v)
}

// fill collects the transactions of a page, from memory and disk.
func (r *Reader) fill(v ledger.View, w *walk, by snapshot.Asker) (err error) {
	if w.before, err = r.bound(v, w.Before, by); err != nil {
		return err
	}
	if w.after, err = r.bound(v, w.After, by); err != nil || !v.Head.HasBlock {
		return err
	}
	if !w.OldestFirst {
		if !r.inMemory(v, w) {
			_, err = r.onDisk(v, w, by)
		}
		return err
	}
	ends, err := r.onDisk(v, w, by)
	if !ends && err == nil {
		r.inMemory(v, w)
	}
	return err
}

// inMemory collects transactions of the blocks that memory holds, and reports whether the page ends there.
func (r *Reader) inMemory(v ledger.View, w *walk) (ends bool) {
	if w.Address.Known {
		if w.wanted.Key = r.Stored.Key(&w.Address.Value); w.wanted.Key == 0 {
			return false
		}
	}
	blocks := w.within(blocksOf(v))
	for i := range blocks {
		b := blocks[len(blocks)-1-i]
		if w.OldestFirst {
			b = blocks[i]
		}
		if b.MayHave(w.wanted) && w.collect(b) {
			return true
		}
	}
	return false
}

// onDisk collects transactions of the blocks that only the archive holds, and reports whether the page ends there. After an error
// the caller must not use the walk any more.
func (r *Reader) onDisk(v ledger.View, w *walk, by snapshot.Asker) (bool, error) {
	a := r.archive.Load()
	if a == nil || v.Head.Floor == 0 {
		return false, nil
	}
	from, to := w.slots(v.Head.Floor - 1)
	stored := txstore.New() // what is packed for one page takes no lock that ingest takes
	var began time.Time     // with the first block: waiting for a turn does not count
	blocks, ends := 0, false
	err := a.Walk(w.Address, from, to, w.OldestFirst, by, func(c snapshot.Candidate) (more bool, err error) {
		if blocks++; blocks == 1 {
			began = time.Now()
		}
		w.keys += c.Lines // examining a line of a filter takes less time than examining a key
		// The page does not end in the first block, since it may begin there, nor in a block that names no keys, since that
		// may have no transaction to end with.
		over := blocks > 1 && (w.keys > mostKeys || time.Since(began) > diskTime || time.Until(by.Deadline) < diskTime)
		if !c.Named && (!over || c.Lines == 0) {
			return true, nil
		}
		b, err := c.Load()
		if err != nil || len(b.Transactions) == 0 {
			return true, err
		}
		packed := stored.Pack(b)
		if w.Address.Known { // the block that was packed keeps the number of the key, if it names it
			w.wanted.Key = stored.Key(&w.Address.Value)
		}
		if w.wanted.Key != 0 || !w.Address.Known {
			ends = w.collect(packed)
		}
		if !ends && over {
			ends, w.page.Next = true, ledger.Some(packed.Signature(w.last(packed.Len())))
		}
		runtime.KeepAlive(packed)
		return !ends, nil
	})
	if err != nil {
		return false, err
	}
	return ends, nil
}

// bound returns the transaction at an end of a range, nil for an open end.
func (r *Reader) bound(v ledger.View, sig ledger.Opt[ledger.Signature], by snapshot.Asker) (*ledger.Transaction, error) {
	if !sig.Known {
		return nil, nil
	}
	return r.transaction(v, sig.Value, true, by)
}

const (
	turnKeys = 1 << 14 // keys that a walk examines between two yields: some ten microseconds of work
	mostKeys = 1 << 22 // keys that a walk examines for one page: some milliseconds
	// diskTime is how long a walk examines blocks on disk for one page, at least two of them: other clients wait meanwhile.
	diskTime = 25 * time.Millisecond
)

// walk collects the transactions of one page, block by block.
type walk struct {
	ledger.TransactionRange
	before, after *ledger.Transaction // nil: an open end
	wanted        txstore.Wanted
	page          ledger.TransactionPage
	keys          int // that were examined
}

// within returns those of blocks, which are oldest first, that may have transactions in the range.
func (w *walk) within(blocks txstore.Chain) txstore.Chain {
	from, to := w.slots(math.MaxUint64 - 1)
	blocks = blocks[blocks.FirstFrom(from):]
	return blocks[:blocks.FirstFrom(to+1)]
}

// slots returns the first and the last slot of the range, which ends at newest at the latest.
func (w *walk) slots(newest ledger.Slot) (from, to ledger.Slot) {
	from, to = w.FromSlot.Value, newest
	if w.after != nil {
		from = max(from, w.after.Slot)
	}
	if w.before != nil {
		to = min(to, w.before.Slot)
	}
	if w.ToSlot.Known {
		to = min(to, w.ToSlot.Value)
	}
	return from, to
}

// last returns the index of the transaction that the walk reaches last in a block of n.
func (w *walk) last(n int) int {
	if w.OldestFirst {
		return n - 1
	}
	return 0
}

// collect adds the wanted transactions of a block to the page, and reports whether the page ends in this block.
func (w *walk) collect(b *txstore.Block) (ends bool) {
	first, last := 0, b.Len()
	if w.after != nil && b.Block.Slot == w.after.Slot {
		first = int(w.after.Index) + 1
	}
	if w.before != nil && b.Block.Slot == w.before.Slot {
		last = int(w.before.Index)
	}
	had := w.keys
	var found []int
	next := -1 // index of the transaction after which the next page begins
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
