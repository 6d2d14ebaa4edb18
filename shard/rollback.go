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
	mints []ledger.Pubkey // the mints that they wrote, without those already restored
	bases []baseChange    // base state to merge in again
}

func (j *rollback) step(s *state) (more bool) {
	w := writer{state: s, Point: j.Point}
	if j.todo == nil {
		j.begin(s)
	}
	for range sliceKeys {
		if next, more := j.todo.next(); more {
			j.restore(w, *next.key)
		} else if len(j.mints) > 0 {
			j.restoreMint(w, j.mints[0])
			j.mints = j.mints[1:]
		} else {
			j.result.Hash = s.hash
			return false
		}
	}
	return true
}

// begin finds the undone versions and the base state since.
func (j *rollback) begin(s *state) {
	j.todo = s.accounts.overlay.inOrder(j.first, newest)
	j.mints = s.mints.writtenSince(j.first)
	since := slices.IndexFunc(s.bases, func(b baseChange) bool { return b.at.Version >= j.first })
	if since >= 0 {
		j.bases = s.bases[since:]
	}
}

// restoreMint restores a mint unless the undone versions wrote its account, too: then restore has done so already. It makes no
// update, so it comes after all accounts.
func (j *rollback) restoreMint(w writer, key ledger.Pubkey) {
	if at := w.accounts.at(&key, newest); at.head == 0 || w.accounts.overlay.cells.at(at.head).version < j.first {
		j.restore(w, key)
	}
}

// restore writes the account and the mint facts that key had before version first, with later base state merged in.
func (j *rollback) restore(w writer, key ledger.Pubkey) {
	account := w.accounts.unpackCopy(w.accounts.at(&key, j.first-1), new(ledger.Account))
	at := w.accounts.at(&key, newest)
	now := w.atHorizon(w.accounts.unpack(at, new(ledger.Account)))
	if reflect.DeepEqual(now, account) {
		now = account // not written since first, or restored by an earlier rollback
	}
	mint := w.mints.at(&key, j.first-1)
	for _, b := range j.bases {
		writes := b.writes[key]
		if len(writes) == 0 {
			continue
		}
		account = atHorizon(b.at.Horizon, account)
		before, p := account, ledger.BaseProvenance(b.base.Slot)
		for _, write := range writes {
			if write.account == nil {
				mint = ledger.MintAfter(account, mint, write.mint, false, p)
				continue
			}
			if setsMint(write.account) {
				mint = mintAfter(account, mint, write.account, p)
			}
			account = ledger.Merge(account, write.account, p)
		}
		account = w.admitted(before, account)
	}
	account = w.atHorizon(account)
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
