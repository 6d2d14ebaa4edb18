package shard

import (
	"slices"

	"ledgerd/engine/ledger"
)

// rollback writes again, as a new version, what stood before version first. Base
// state learned since is no part of the undone branch: it is learned once more on top.
type rollback struct {
	version, first ledger.Version

	started bool
	todo    []ledger.Pubkey // keys of accounts and mints still to restore, in order
	bases   map[ledger.Pubkey][]baseWrite
	result  Applied
}

type baseWrite struct {
	write  *ledger.AccountWrite
	mint   *ledger.Mint // a fact of the mint alone, when write is nil
	taught ledger.Provenance
	base   *ledger.BaseState // that it is of
}

func (j *rollback) step(s *state) (more bool) {
	w := writer{state: s, version: j.version}
	if !j.started {
		j.started = true
		j.begin(w)
	}
	for range sliceKeys {
		switch {
		case len(j.todo) > 0:
			j.restore(w, j.todo[0])
			j.todo = j.todo[1:]
		default:
			j.result.Hash = s.hash
			return false
		}
	}
	return true
}

// begin notes which accounts and mints the undone versions wrote. Finding and sorting those is one slice, however many.
func (j *rollback) begin(w writer) {
	j.todo = append(w.accounts.overlay.writtenSince(j.first), w.mints.writtenSince(j.first)...)
	slices.SortFunc(j.todo, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	j.todo = slices.Compact(j.todo)
	j.collectBases(w)
}

func (j *rollback) collectBases(w writer) {
	j.bases = make(map[ledger.Pubkey][]baseWrite)
	for _, b := range w.bases {
		if b.version < j.first {
			continue
		}
		taught := ledger.BaseProvenance(b.base.Slot)
		for i := range b.base.Accounts {
			write := &b.base.Accounts[i]
			if w.owns(write.Pubkey.Prefix()) {
				j.bases[write.Pubkey] = append(j.bases[write.Pubkey], baseWrite{write: write, taught: taught, base: b.base})
			}
		}
		for i := range b.base.Mints {
			m := &b.base.Mints[i]
			if w.owns(m.Pubkey.Prefix()) {
				j.bases[m.Pubkey] = append(j.bases[m.Pubkey], baseWrite{mint: &m.Mint, taught: taught, base: b.base})
			}
		}
	}
}

// restore puts back what stood at key, with the base state learned since on top of it.
func (j *rollback) restore(w writer, key ledger.Pubkey) {
	account := w.accounts.read(&key, j.first-1, new(ledger.Account))
	place := w.accounts.find(&key)
	now := w.accounts.newest(place, new(ledger.Account))
	if now != nil && account != nil && same(now, account) {
		// Nobody wrote it since, or an earlier rollback put it back.
		now = account
	}
	mint := w.mints.at(&key, j.first-1)
	held, of := account, (*ledger.BaseState)(nil) // before the base state at hand
	for _, b := range j.bases[key] {
		if b.base != of {
			account = w.admitted(held, account)
			held, of = account, b.base
		}
		if b.write == nil {
			mint = ledger.MintAfter(account, mint, b.mint, false, b.taught)
			continue
		}
		mint = mintAfter(account, mint, b.write, b.taught)
		account = ledger.Merge(account, b.write, b.taught)
	}
	account = w.admitted(held, account)
	w.setMint(key, w.mints.at(&key, newest), mint)
	if now == account && !w.accounts.wasForgotten(place) {
		return // the mint alone was written
	}
	switch changed := w.setAccount(place, &key, now, account); {
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
