package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"ledgerd/engine/ledger"
)

// find returns the newest transaction with the signature that s holds, and its block.
func (s shown) find(sig ledger.Signature) (*ledger.Transaction, bool) {
	for _, b := range slices.Backward(s.chain) {
		if b.Slot < s.head.Floor {
			return nil, false
		}
		for i := range b.Transactions {
			if b.Transactions[i].Signature == sig {
				return &b.Transactions[i], true
			}
		}
	}
	return nil, false
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
	for _, sig := range c.signatures {
		got, v, err := e.Transaction(q, sig)
		if viewErr := s.checkView(v); viewErr != nil {
			return viewErr
		}
		want, held := s.find(sig)
		if !held {
			if why, _ := absence(err); why.Absence != ledger.TransactionNotFound {
				return fmt.Errorf("transaction %s: got %v, %v, want not held", sig, got.Transaction, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got.Transaction, want) || got.Commitment != s.reached(want.Slot) {
			return fmt.Errorf("transaction %s: got %+v %s, %v, want %+v %s", sig, got.Transaction, got.Commitment, err, want, s.reached(want.Slot))
		}
	}
	return nil
}

// absent returns why there is no block at slot.
func (s shown) absent(slot ledger.Slot) ledger.Absence {
	switch {
	case !s.point.hasBlock || slot > s.point.tips[s.level].Slot:
		return ledger.SlotNotYetProduced
	case slot < s.point.root:
		return ledger.SlotNotIndexed
	case slot < s.head.Floor:
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
	for slot := first; slot <= s.point.tips[ledger.Processed].Slot+2; slot++ {
		got, v, err := e.Block(q, slot)
		if viewErr := s.checkView(v); viewErr != nil {
			return viewErr
		}
		i := slices.IndexFunc(s.chain, func(b *modelBlock) bool { return b.Slot == slot })
		if i < 0 || slot < s.head.Floor {
			if why, _ := absence(err); err == nil || why.Absence != s.absent(slot) {
				return fmt.Errorf("block %d: got %v, want %v", slot, err, &ledger.NotFoundError{Absence: s.absent(slot)})
			}
			continue
		}
		if err != nil || !sameBlock(got.Block, s.chain[i].Block) || got.Commitment != s.reached(slot) {
			return fmt.Errorf("block %d: got %+v %s, %v, want %s", slot, got.Block, got.Commitment, err, s.reached(slot))
		}
	}
	got, v, err := e.LatestBlock(q)
	if err = errors.Join(err, s.checkView(v)); err != nil {
		return fmt.Errorf("latest block: %w", err)
	}
	if want := s.chain[len(s.chain)-1]; !sameBlock(got.Block, want.Block) || got.Commitment != s.reached(want.Slot) {
		return fmt.Errorf("latest block: got slot %d %s, want %d %s", got.Block.Slot, got.Commitment, want.Slot, s.reached(want.Slot))
	}
	return nil
}

func sameBlock(a, b *ledger.Block) bool {
	return a.Slot == b.Slot && a.ParentSlot == b.ParentSlot && a.Blockhash == b.Blockhash && a.Time == b.Time &&
		a.PreviousBlockhash == b.PreviousBlockhash && a.Height == b.Height && a.TransactionCount == b.TransactionCount &&
		len(a.Transactions) == len(b.Transactions) && (len(a.Transactions) == 0 || reflect.DeepEqual(a.Transactions, b.Transactions))
}

// newestFirst returns all transactions that s holds, newest first.
func (s shown) newestFirst() []*ledger.Transaction {
	var all []*ledger.Transaction
	for _, b := range slices.Backward(s.chain) {
		if b.Slot < s.head.Floor {
			break
		}
		for i := len(b.Transactions) - 1; i >= 0; i-- {
			all = append(all, &b.Transactions[i])
		}
	}
	return all
}

func repeats(all []*ledger.Transaction) bool {
	seen := make(map[ledger.Signature]bool)
	for _, t := range all {
		if seen[t.Signature] {
			return true
		}
		seen[t.Signature] = true
	}
	return false
}

// recent reads the newest transactions: all of them, those between two of them, and those up to one that nobody holds.
func (c *comparer) recent(e *Engine, q ledger.Query, s shown) error {
	all := s.newestFirst()
	if repeats(all) {
		return nil // a bound would mean two places; sources do not do that, chance does
	}
	for range 8 {
		i, j := c.r.IntN(len(all)+1)-1, c.r.IntN(len(all)+1) // of the newer bound and of the older one; -1 and len(all): none
		r, want := ledger.RecentRange{Limit: 1 + c.r.IntN(20)}, []*ledger.Transaction(nil)
		if i >= 0 {
			r.Before = ledger.Some(all[i].Signature)
		}
		if j < len(all) {
			r.After = ledger.Some(all[j].Signature)
		}
		if i < j {
			want = all[i+1 : j]
		}
		got, more, v, err := e.Recent(q, r)
		if err = errors.Join(err, s.checkView(v)); err != nil {
			return err
		}
		page := want[:min(len(want), r.Limit)]
		if more != (len(want) > r.Limit) || len(got)+len(page) > 0 && !reflect.DeepEqual(got, page) {
			return fmt.Errorf("recent, between %d and %d of %d: got %d, more %v, want %d of %d",
				i, j, len(all), len(got), more, len(page), len(want))
		}
	}
	sig := ledger.Some(c.signatures[c.r.IntN(len(c.signatures))])
	if _, held := s.find(sig.Value); held {
		return nil
	}
	for _, r := range []ledger.RecentRange{{Before: sig, Limit: 1}, {After: sig, Limit: 1}} {
		_, _, _, err := e.Recent(q, r)
		if why, ok := absence(err); !ok || why.Absence != ledger.TransactionNotFound {
			return fmt.Errorf("recent up to a transaction not held: %v", err)
		}
	}
	return nil
}
