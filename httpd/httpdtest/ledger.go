// Package httpdtest has a ledger for the tests of the doors. It answers from the records that a test gives it, as package reader answers from those of the
// shards. It looks at them all for each question, and takes no locks: a test changes them while nobody asks, but for the newest head.
package httpdtest

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"

	"ledgerd/engine/ledger"
)

// Ledger answers from its records. Lamports of a live account with Since grow with the slot that is answered from.
type Ledger struct {
	// Ask begins each answer. It returns the view, which Lacks accounts if the node holds a part of them, or an error to answer.
	Ask    func(q ledger.Query) (ledger.View, error)
	Newest atomic.Pointer[ledger.Head]
	State  ledger.NodeStatus

	Held  map[ledger.Pubkey]ledger.Account // which may be closed
	Facts map[ledger.Pubkey]*ledger.Mint
	Chain []*ledger.Block // oldest first; transactions up to the floor of the head are on disk
	// First is where the blocks begin that are held, and Start those that were: before it none was followed.
	First, Start ledger.Slot
	Page         int          // how many accounts and transactions a page of a list has at most; 0: as many as are asked for
	Looked       atomic.Int64 // mints that were asked for
}

// Key returns a key whose bytes are all n.
func Key(n byte) ledger.Pubkey { return ledger.Pubkey(bytes.Repeat([]byte{n}, 32)) }

// Signature returns a signature whose bytes are all n.
func Signature(n byte) ledger.Signature { return ledger.Signature(bytes.Repeat([]byte{n}, 64)) }

// Absent returns the error that says why something is not there.
func Absent(why ledger.Absence) error { return &ledger.NotFoundError{Absence: why} }

// Put holds an account.
func (l *Ledger) Put(a ledger.Account) { l.Held[a.Pubkey] = a }

// Head returns the newest head.
func (l *Ledger) Head() *ledger.Head { return l.Newest.Load() }

// Status returns the state of the node.
func (l *Ledger) Status() ledger.NodeStatus { return l.State }

// Await ends at once: the slot is there, or never comes.
func (l *Ledger) Await(q ledger.Query) error {
	_, err := l.Ask(q)
	return err
}

// LatestBlock returns the newest block of a level.
func (l *Ledger) LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error) {
	return l.block(q, func(v ledger.View) ledger.Slot { return v.Tip().Slot })
}

// Block returns the block at a slot.
func (l *Ledger) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	return l.block(q, func(ledger.View) ledger.Slot { return slot })
}

func (l *Ledger) block(q ledger.Query, slotIn func(ledger.View) ledger.Slot) (none ledger.BlockAnswer, _ ledger.View, _ error) {
	v, err := l.Ask(q)
	if err != nil {
		return none, v, err
	}
	slot := slotIn(v)
	at := slices.IndexFunc(l.Chain, func(b *ledger.Block) bool { return b.Slot == slot })
	switch {
	case slot > v.Tip().Slot:
		return none, v, Absent(ledger.SlotNotYetProduced)
	case slot < l.Start:
		return none, v, Absent(ledger.SlotNotIndexed)
	case slot < l.First:
		return none, v, Absent(ledger.SlotPruned)
	case at < 0:
		return none, v, Absent(ledger.SlotSkipped)
	}
	return ledger.BlockAnswer{Block: l.Chain[at], Commitment: v.Head.CommitmentOf(slot)}, v, nil
}

// Slots returns the slots that have blocks.
func (l *Ledger) Slots(q ledger.Query, from, to ledger.Slot, limit int) (p ledger.SlotPage, v ledger.View, err error) {
	v, err = l.Ask(q)
	p.HistoryFrom = l.First
	for _, b := range l.Chain {
		if err == nil && b.Slot >= from && b.Slot <= min(to, v.Tip().Slot) && len(p.Slots) < limit {
			p.Slots = append(p.Slots, b.Slot)
		}
	}
	return p, v, err
}

// Transaction returns a transaction by its signature.
func (l *Ledger) Transaction(q ledger.Query, sig ledger.Signature) (ledger.TransactionAnswer, ledger.View, error) {
	v, err := l.Ask(q)
	if err != nil {
		return ledger.TransactionAnswer{}, v, err
	}
	t := l.find(v, sig)
	if t == nil || q.Recent && t.Slot <= v.Head.Floor {
		return ledger.TransactionAnswer{}, v, l.lacks(v, sig)
	}
	return ledger.TransactionAnswer{Transaction: t, Commitment: v.Head.CommitmentOf(t.Slot)}, v, nil
}

// transactions returns those of a view, newest first.
func (l *Ledger) transactions(v ledger.View) (all []*ledger.Transaction) {
	for _, b := range slices.Backward(l.Chain) {
		for i := range slices.Backward(b.Transactions) {
			if t := &b.Transactions[i]; t.Slot <= v.Tip().Slot {
				all = append(all, t)
			}
		}
	}
	return all
}

// find returns a transaction of a view, nil if there is none.
func (l *Ledger) find(v ledger.View, sig ledger.Signature) *ledger.Transaction {
	for _, b := range l.Chain {
		for i := range b.Transactions {
			if t := &b.Transactions[i]; t.Signature == sig && t.Slot <= v.Tip().Slot {
				return t
			}
		}
	}
	return nil
}

// lacks returns why a view has no transaction with a signature.
func (l *Ledger) lacks(v ledger.View, sig ledger.Signature) error {
	if l.find(ledger.View{Head: v.Head}, sig) != nil {
		return Absent(ledger.TransactionNotYet)
	}
	return Absent(ledger.TransactionNotFound)
}

// Transactions returns a page of the transactions in a range.
func (l *Ledger) Transactions(q ledger.Query, in ledger.TransactionRange) (p ledger.TransactionPage, v ledger.View, err error) {
	if v, err = l.Ask(q); err != nil {
		return p, v, err
	}
	outside := func(bound ledger.Opt[ledger.Signature], order int) func(*ledger.Transaction) bool {
		at := l.find(v, bound.Value)
		if bound.Known && at == nil {
			err = l.lacks(v, bound.Value)
		}
		return func(t *ledger.Transaction) bool {
			return at != nil && cmp.Or(cmp.Compare(t.Slot, at.Slot), cmp.Compare(t.Index, at.Index)) != order
		}
	}
	notBefore, notAfter := outside(in.Before, -1), outside(in.After, 1)
	if err != nil {
		return p, v, err
	}
	page := slices.DeleteFunc(l.transactions(v), func(t *ledger.Transaction) bool {
		return notBefore(t) || notAfter(t) || in.Address.Known && !slices.Contains(t.Accounts, in.Address.Value) ||
			in.Success.Known && t.Success != in.Success || t.Slot < in.FromSlot.Value || in.ToSlot.Known && t.Slot > in.ToSlot.Value
	})
	if in.OldestFirst {
		slices.Reverse(page)
	}
	p = ledger.TransactionPage{Transactions: page, HistoryFrom: l.First}
	if a, held := l.Held[in.Address.Value]; in.Address.Known && len(page) == 0 && !held {
		err = absence(v, &a)
	}
	if limit := min(in.Limit, cmp.Or(l.Page, in.Limit)); len(page) > limit {
		p.Transactions, p.Next = page[:limit], ledger.Some(page[limit-1].Signature)
	}
	return p, v, err
}

// absence returns nil for a live account, else an error that says why there is none.
func absence(v ledger.View, a *ledger.Account) error {
	switch {
	case a.Exists():
		return nil
	case a.Since != 0:
		return &ledger.NotFoundError{Absence: ledger.AccountClosed, Slot: a.Since.Slot()}
	case v.Lacks:
		return Absent(ledger.AccountNotIndexed)
	}
	return Absent(ledger.AccountNotFound)
}

// at returns an account as it stands in a view.
func (l *Ledger) at(v ledger.View, key ledger.Pubkey) ledger.Account {
	a := l.Held[key]
	a.Pubkey = key
	if a.Since != 0 && a.Exists() {
		a.Lamports += ledger.Lamports(v.Tip().Slot)
	}
	return a
}

// Account returns an account without its token facts.
func (l *Ledger) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	v, err := l.Ask(q)
	if err != nil {
		return ledger.Account{}, v, err
	}
	a := l.at(v, key)
	a.Token = nil
	return a, v, absence(v, &a)
}

// Accounts returns accounts by their keys.
func (l *Ledger) Accounts(q ledger.Query, keys []ledger.Pubkey) (all []ledger.Account, v ledger.View, err error) {
	if v, err = l.Ask(q); err != nil {
		return nil, v, err
	}
	part := v.Lacks
	v.Lacks = false
	for _, key := range keys {
		a := l.at(v, key)
		all, v.Lacks = append(all, a), v.Lacks || part && v.Misses(&a)
	}
	return all, v, nil
}

// Mints returns the facts of mints.
func (l *Ledger) Mints(q ledger.Query, keys []ledger.Pubkey) (all []*ledger.Mint, v ledger.View, err error) {
	v, err = l.Ask(q)
	l.Looked.Add(int64(len(keys)))
	for _, key := range keys {
		all = append(all, l.Facts[key])
	}
	return all, v, err
}

// Tokens returns a page of the token accounts of somebody.
func (l *Ledger) Tokens(q ledger.Query, of ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, _ []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	return l.list(q, of, after, limit, func(_ *ledger.View, a *ledger.Account) (isOf, wanted bool) {
		switch {
		case a.Token == nil:
		case q.TokensOf == ledger.OfDelegate:
			isOf = a.Token.Details.Value.Delegate == ledger.Some(of)
		case q.TokensOf == ledger.OfMint:
			isOf = a.Token.Mint == of
		default:
			isOf = a.Token.Owner == of
		}
		return isOf, isOf
	})
}

// Program returns a page of the accounts of a program.
func (l *Ledger) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, _ []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	return l.list(q, program, after, limit, func(v *ledger.View, a *ledger.Account) (isOf, wanted bool) {
		if p := a.Program(); p == nil || *p != program {
			return false, false
		}
		v.DataUnknown = v.DataUnknown || q.Where != nil && a.Known&ledger.FieldData == 0
		return true, q.Where == nil || q.Where.Match(a)
	})
}

// list returns a page of the wanted accounts behind a key, in the order of their keys.
func (l *Ledger) list(q ledger.Query, of ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, belongs func(*ledger.View, *ledger.Account) (isOf, wanted bool)) (
	page []ledger.Account, next ledger.Opt[ledger.Pubkey], v ledger.View, err error) {
	if v, err = l.Ask(q); err != nil {
		return nil, next, v, err
	}
	_, known := l.Held[of]
	for key := range l.Held {
		a := l.at(v, key)
		if !a.Exists() {
			continue
		}
		isOf, wanted := belongs(&v, &a)
		known = known || isOf
		if wanted && (!after.Known || key.Compare(&after.Value) > 0) {
			page = append(page, a)
		}
	}
	if !known {
		return nil, next, v, Absent(ledger.OwnerNotFound)
	}
	slices.SortFunc(page, func(a, b ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	if limit = min(limit, cmp.Or(l.Page, limit)); len(page) > limit {
		page, next = page[:limit], ledger.Some(page[limit-1].Pubkey)
	}
	return page, next, v, nil
}
