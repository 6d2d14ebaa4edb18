package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"ledgerd/engine/ledger"
)

// newestFirst returns all transactions that s holds, newest first.
func (s shown) newestFirst() (all []*ledger.Transaction) {
	for _, b := range slices.Backward(s.chain) {
		for i := len(b.Transactions) - 1; i >= 0 && b.Slot >= s.from; i-- {
			all = append(all, &b.Transactions[i])
		}
	}
	return all
}

// wholeFrom returns the slot from which on no block of the chain is missing among those that s holds.
func (s shown) wholeFrom() ledger.Slot {
	from := s.from
	for i, b := range s.chain[1:] {
		if b.Slot >= from && b.ParentSlot > s.chain[i].Slot {
			from = b.Slot
		}
	}
	return from
}

// place returns where in a list the newest transaction with the signature is; -1: nowhere.
func place(all []*ledger.Transaction, sig ledger.Signature) int {
	return slices.IndexFunc(all, func(t *ledger.Transaction) bool { return t.Signature == sig })
}

// reached returns the level that the block at slot has reached.
func (s shown) reached(slot ledger.Slot) ledger.Commitment {
	level := ledger.Processed
	for _, l := range levels {
		if slot <= s.point.tips[l].Slot {
			level = l
		}
	}
	return level
}

func (c *comparer) transactions(e *Engine, q ledger.Query, s shown) error {
	all := s.newestFirst()
	for _, sig := range c.signatures {
		got, v, err := e.Transaction(q, sig)
		if viewErr := s.checkView(v); viewErr != nil {
			return viewErr
		}
		i := place(all, sig)
		if i < 0 {
			if why, _ := absence(err); why.Absence != s.unheld(sig) {
				return fmt.Errorf("transaction %s: got %v, %v, want absence %d", sig, got.Transaction, err, s.unheld(sig))
			}
			continue
		}
		if want := all[i]; err != nil || !reflect.DeepEqual(got.Transaction, want) || got.Commitment != s.reached(want.Slot) {
			return fmt.Errorf("transaction %s: got %+v %s, %v, want %+v %s", sig, got.Transaction, got.Commitment, err, want, s.reached(want.Slot))
		}
	}
	return nil
}

// unheld returns why s holds no transaction with a signature.
func (s shown) unheld(sig ledger.Signature) ledger.Absence {
	above := shown{chain: s.point.chain[len(s.chain):]}
	if place(above.newestFirst(), sig) >= 0 {
		return ledger.TransactionNotYet
	}
	return ledger.TransactionNotFound
}

// absent returns why there is no block at slot.
func (s shown) absent(slot ledger.Slot) ledger.Absence {
	switch {
	case !s.point.hasBlock || slot > s.point.tips[s.level].Slot:
		return ledger.SlotNotYetProduced
	case slot < s.point.root:
		return ledger.SlotNotIndexed
	case slot < s.from:
		return ledger.SlotPruned
	}
	for _, b := range s.chain {
		if b.Slot > slot && b.ParentSlot < slot {
			return ledger.SlotSkipped
		}
	}
	return ledger.SlotNotIndexed
}

func (c *comparer) blocks(e *Engine, q ledger.Query, s shown) error {
	if !s.point.hasBlock {
		return nil
	}
	first := s.point.root - min(s.point.root, 2)
	var slots []ledger.Slot // of blocks that are held
	for _, b := range s.chain {
		if b.Slot >= s.from {
			slots = append(slots, b.Slot)
		}
	}
	for n := range min(len(slots), 3) + 1 {
		from, to := first+ledger.Slot(n), s.point.tips[ledger.Processed].Slot+2-ledger.Slot(n)
		want := slices.DeleteFunc(slices.Clone(slots), func(slot ledger.Slot) bool { return slot < from || slot > to })
		want = want[:min(len(want), 10*n+5)]
		got, v, err := e.Slots(q, from, to, 10*n+5)
		if viewErr := s.checkView(v); viewErr != nil || err != nil || !slices.Equal(got.Slots, want) {
			return fmt.Errorf("%d slots from %d to %d: got %v, %v, %v, want %v", 10*n+5, from, to, got, viewErr, err, want)
		}
	}
	q.Parts = ledger.WholeBlock
	for slot := first; slot <= s.point.tips[ledger.Processed].Slot+2; slot++ {
		got, v, err := e.Block(q, slot)
		if viewErr := s.checkView(v); viewErr != nil {
			return viewErr
		}
		i := slices.IndexFunc(s.chain, func(b *modelBlock) bool { return b.Slot == slot })
		if i < 0 || slot < s.from {
			if why, _ := absence(err); err == nil || why.Absence != s.absent(slot) {
				return fmt.Errorf("block %d: got %v, want %v", slot, err, &ledger.NotFoundError{Absence: s.absent(slot)})
			}
			continue
		}
		if want := s.answer(s.chain[i]); err != nil || !reflect.DeepEqual(got, want) {
			return fmt.Errorf("block %d: got %+v %s, %v, want %+v %s", slot, got.Block, got.Commitment, err, want.Block, want.Commitment)
		}
	}
	got, v, err := e.LatestBlock(q)
	if err = errors.Join(err, s.checkView(v)); err != nil {
		return fmt.Errorf("latest block: %w", err)
	}
	if want := s.answer(s.chain[len(s.chain)-1]); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("latest block: got slot %d %s, want %d %s", got.Block.Slot, got.Commitment, want.Block.Slot, want.Commitment)
	}
	return nil
}

// answer returns what is answered of a block.
func (s shown) answer(b *modelBlock) ledger.BlockAnswer {
	return ledger.BlockAnswer{Block: b.WithoutWrites(), Commitment: s.reached(b.Slot)}
}

// ranges reads lists of transactions page by page: all of them, those between two of them, in some slots, of an address, of an outcome, from
// either end, and those up to one that nobody holds.
func (c *comparer) ranges(e *Engine, q ledger.Query, s shown) error {
	all := s.newestFirst()
	for i, t := range all {
		if place(all, t.Signature) != i {
			return nil // a bound would mean two places; sources do not do that, chance does
		}
	}
	for range 8 {
		i, j := c.r.IntN(len(all)+1)-1, c.r.IntN(len(all)+1) // of the newer bound and of the older one; -1 and len(all): none
		r, want := ledger.TransactionRange{Limit: 1 + c.r.IntN(20), OldestFirst: c.r.IntN(2) == 0}, []*ledger.Transaction(nil)
		if i >= 0 {
			r.Before = ledger.Some(all[i].Signature)
		}
		if j < len(all) {
			r.After = ledger.Some(all[j].Signature)
		}
		if c.r.IntN(3) == 0 {
			r.Success = ledger.Some(c.r.IntN(2) == 0)
		}
		if tip := s.point.tips[s.level].Slot; c.r.IntN(3) == 0 {
			r.FromSlot = ledger.Some(tip - min(tip, ledger.Slot(c.r.IntN(20))))
		}
		if tip := s.point.tips[s.level].Slot; c.r.IntN(3) == 0 {
			r.ToSlot = ledger.Some(tip - min(tip, ledger.Slot(c.r.IntN(10))))
		}
		if c.r.IntN(2) == 0 {
			r.Address = ledger.Some(c.keys[c.r.IntN(len(c.keys))])
		}
		if i < j {
			want = slices.DeleteFunc(slices.Clone(all[i+1:j]), func(t *ledger.Transaction) bool { return !isIn(t, &r) })
		}
		if r.OldestFirst {
			slices.Reverse(want)
		}
		if err := s.rangeOf(e, q, r, want, all); err != nil {
			return fmt.Errorf("between %d and %d of %d, %+v: %w", i, j, len(all), r, err)
		}
	}
	sig := ledger.Some(c.signatures[c.r.IntN(len(c.signatures))])
	if place(all, sig.Value) >= 0 {
		return nil
	}
	for _, r := range []ledger.TransactionRange{{Before: sig, Limit: 1}, {After: sig, Limit: 1}} {
		_, _, err := e.Transactions(q, r)
		if why, ok := absence(err); !ok || why.Absence != s.unheld(sig.Value) {
			return fmt.Errorf("transactions up to one not held: %v", err)
		}
	}
	return nil
}

// isIn reports whether a transaction is one that a range asks for, but for the bounds.
func isIn(t *ledger.Transaction, r *ledger.TransactionRange) bool {
	return (!r.Success.Known || t.Success == r.Success) && t.Slot >= r.FromSlot.Value && (!r.ToSlot.Known || t.Slot <= r.ToSlot.Value) &&
		(!r.Address.Known || slices.Contains(t.Accounts, r.Address.Value))
}

// rangeOf reads one list to its end: every page but the last is full, the end is told exactly, and a list of nothing is no error where the
// address is known.
func (s shown) rangeOf(e *Engine, q ledger.Query, r ledger.TransactionRange, want, all []*ledger.Transaction) error {
	unknown := r.Address.Known && s.world.see(r.Address.Value).lamports == 0 &&
		!slices.ContainsFunc(all, func(t *ledger.Transaction) bool { return slices.Contains(t.Accounts, r.Address.Value) })
	for at := 0; ; {
		got, v, err := e.Transactions(q, r)
		if viewErr := s.checkView(v); viewErr != nil {
			return viewErr
		}
		if unknown {
			if _, ok := absence(err); !ok {
				return fmt.Errorf("got %v, want an absence", err)
			}
			return nil
		}
		page := want[at:min(len(want), at+r.Limit)]
		at += len(page)
		if err != nil || len(got.Transactions)+len(page) > 0 && !reflect.DeepEqual(got.Transactions, page) ||
			got.Next.Known != (at < len(want)) || s.point.hasBlock && got.HistoryFrom != s.wholeFrom() {
			return fmt.Errorf("got %d, next %v, from %d, %v, want %d, %d of %d", len(got.Transactions), got.Next, got.HistoryFrom, err, len(page), at, len(want))
		}
		switch {
		case !got.Next.Known:
			return nil
		case r.OldestFirst:
			r.After = got.Next
		default:
			r.Before = got.Next
		}
	}
}
