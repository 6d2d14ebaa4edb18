package shard

import (
	"reflect"
	"slices"

	"ledgerd/engine/ledger"
)

// rollback writes, as a new version, the values that were valid before version first. Base
// state since first does not belong to the undone branch, so it is merged in again.
type rollback struct {
	Point
	first ledger.Version

	todo  []ledger.Pubkey               // keys of accounts and mints still to restore, in order
	bases map[ledger.Pubkey][]baseWrite // nil before the first slice
	outcome[Applied]
}

// baseWrite is one write of base state.
type baseWrite struct {
	baseChange // which the write belongs to
	write      *ledger.AccountWrite
	mint       *ledger.Mint // if write is nil
}

func (j *rollback) step(s *state) (more bool) {
	w := writer{state: s, Point: j.Point}
	if j.bases == nil {
		j.begin(w)
	}
	for range sliceKeys {
		if len(j.todo) == 0 {
			j.result.Hash = s.hash
			return false
		}
		j.restore(w, j.todo[0])
		j.todo = j.todo[1:]
	}
	return true
}

// begin collects the keys that the undone versions wrote and the base state to merge in again. It is not divided into slices.
func (j *rollback) begin(w writer) {
	j.todo = append(w.accounts.overlay.writtenSince(j.first), w.mints.writtenSince(j.first)...)
	slices.SortFunc(j.todo, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	j.todo = slices.Compact(j.todo)
	j.bases = make(map[ledger.Pubkey][]baseWrite)
	for _, b := range w.bases {
		if b.at.Version < j.first {
			continue
		}
		add := func(key ledger.Pubkey, write baseWrite) {
			if w.owns(key.Prefix()) {
				j.bases[key] = append(j.bases[key], write)
			}
		}
		for i := range b.base.Accounts {
			write := &b.base.Accounts[i]
			add(write.Pubkey, baseWrite{baseChange: b, write: write})
		}
		for i := range b.base.Mints {
			write := &b.base.Mints[i]
			add(write.Pubkey, baseWrite{baseChange: b, mint: &write.Mint})
		}
	}
}

// restore writes the account and the mint facts that key had before version first, with later base state merged in.
func (j *rollback) restore(w writer, key ledger.Pubkey) {
	account := w.accounts.read(&key, j.first-1, new(ledger.Account), &w.accounts.slab)
	at := w.accounts.find(&key)
	now := w.held(w.accounts.newest(at, new(ledger.Account)))
	if reflect.DeepEqual(now, account) {
		now = account // not written since first, or restored by an earlier rollback
	}
	mint := w.mints.at(&key, j.first-1)
	held, of := account, (*ledger.BaseState)(nil) // the account before base state of, for the filter
	for _, b := range j.bases[key] {
		if b.base != of {
			account = heldAt(b.at.Horizon, w.admitted(held, account))
			held, of = account, b.base
		}
		p := ledger.BaseProvenance(b.base.Slot)
		if b.write == nil {
			mint = ledger.MintAfter(account, mint, b.mint, false, p)
			continue
		}
		if tellsMint(b.write) {
			mint = mintAfter(account, mint, b.write, p)
		}
		account = ledger.Merge(account, b.write, p)
	}
	account = w.held(w.admitted(held, account))
	w.setMint(key, w.mints.at(&key, newest), mint)
	if now == account && !w.droppedSince(at.head, j.first) {
		return // only the mint was written
	}
	switch changed := w.setAccount(at, &key, now, account); {
	case changed:
		j.result.Updates = append(j.result.Updates, updateOf(now, account))
	case account != nil:
		unchanged := *account
		unchanged.Known &^= ledger.FieldMint
		j.result.Unchanged = append(j.result.Unchanged, unchanged)
	default:
		j.result.Unchanged = append(j.result.Unchanged, ledger.Account{Pubkey: key})
	}
}
