package shard

import (
	"reflect"
	"slices"

	"ledgerd/engine/ledger"
)

// rollback writes, as a new version, the values that were valid before version first. Base
// state since first does not belong to the undone branch, so it is merged in again.
type rollback struct {
	reply[Applied]
	Point
	first ledger.Version

	todo  *inOrder        // the accounts that the undone versions wrote; nil before the first slice
	next  sortedRun       // of todo
	held  bool            // there is a next one
	mints []ledger.Pubkey // that they wrote and that are still to restore, in order

	bases     []baseChange // base state to merge in again that is not yet in merged
	collected int          // so many writes of the first of bases are in merged
	merged    map[ledger.Pubkey][]baseWrite
}

// baseWrite is one write of base state.
type baseWrite struct {
	baseChange // which the write belongs to
	write      *ledger.AccountWrite
	mint       *ledger.Mint // if write is nil
}

func (j *rollback) step(s *state) (more bool) {
	w := writer{state: s, Point: j.Point}
	if j.todo == nil {
		j.begin(s)
	}
	for range sliceKeys {
		switch {
		case len(j.bases) > 0:
			j.collect(s)
		case j.held || len(j.mints) > 0:
			j.restore(w, j.nextKey())
		default:
			j.result.Hash = s.hash
			return false
		}
	}
	return true
}

// begin finds the undone versions and the base state since. It sorts only mints, of which there are few.
func (j *rollback) begin(s *state) {
	j.todo = s.accounts.overlay.inOrder(j.first, newest)
	j.next, j.held = j.todo.next()
	j.mints = s.mints.writtenSince(j.first)
	slices.SortFunc(j.mints, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	j.mints = slices.Compact(j.mints)
	since := slices.IndexFunc(s.bases, func(b baseChange) bool { return b.at.Version >= j.first })
	if since >= 0 {
		j.bases = s.bases[since:]
	}
	j.merged = make(map[ledger.Pubkey][]baseWrite)
}

// collect adds the next write of bases to merged if its key is the shard's.
func (j *rollback) collect(s *state) {
	key, write := ledger.Pubkey{}, baseWrite{baseChange: j.bases[0]}
	b, n := write.base, j.collected
	j.collected++
	switch mints := n - len(b.Accounts); {
	case mints < 0:
		write.write = &b.Accounts[n]
		key = write.write.Pubkey
	case mints < len(b.Mints):
		write.mint = &b.Mints[mints].Mint
		key = b.Mints[mints].Pubkey
	default:
		j.bases, j.collected = j.bases[1:], 0
		return
	}
	if s.owns(key.Prefix()) {
		j.merged[key] = append(j.merged[key], write)
	}
}

// nextKey takes the lowest key out of todo and mints.
func (j *rollback) nextKey() (key ledger.Pubkey) {
	order := -1
	switch {
	case !j.held:
		order = 1
	case len(j.mints) > 0:
		order = j.next.key.Compare(&j.mints[0])
	}
	if order >= 0 {
		key, j.mints = j.mints[0], j.mints[1:]
	}
	if order <= 0 {
		key = *j.next.key
		j.next, j.held = j.todo.next()
	}
	return key
}

// restore writes the account and the mint facts that key had before version first, with later base state merged in.
func (j *rollback) restore(w writer, key ledger.Pubkey) {
	account := w.accounts.unpackCopy(w.accounts.at(&key, j.first-1), new(ledger.Account))
	at := w.accounts.find(&key)
	now := w.held(w.accounts.unpack(at, new(ledger.Account)))
	if reflect.DeepEqual(now, account) {
		now = account // not written since first, or restored by an earlier rollback
	}
	mint := w.mints.at(&key, j.first-1)
	held, of := account, (*ledger.BaseState)(nil) // the account before base state of, for the filter
	for _, b := range j.merged[key] {
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
