package shard

import "ledgerd/engine/ledger"

// rollback writes again, as a new version, what stood before version first. Base
// state learned since is no part of the undone branch: it is learned once more on top.
type rollback struct {
	version, first ledger.Version

	started  bool
	accounts []*ledger.Account // keys still to restore
	mints    []*mintFacts
	bases    map[ledger.Pubkey][]baseWrite
	result   Applied
}

type baseWrite struct {
	write  *ledger.AccountWrite
	mint   *ledger.Mint // a fact of the mint alone, when write is nil
	taught ledger.Taught
}

func (j *rollback) step(s *state) (more bool) {
	w := writer{state: s, version: j.version}
	if !j.started {
		j.started = true
		j.begin(w)
	}
	for n := 0; n < sliceKeys; n++ {
		switch {
		case len(j.accounts) > 0:
			j.restoreAccount(w, j.accounts[0])
			j.accounts = j.accounts[1:]
		case len(j.mints) > 0:
			j.restoreMint(w, j.mints[0])
			j.mints = j.mints[1:]
		default:
			j.result.Hash = s.hash
			return false
		}
	}
	return true
}

// begin takes blocks and transactions of the undone versions off the chain and notes
// which accounts and mints are to be restored.
func (j *rollback) begin(w writer) {
	for _, b := range w.blocks.writtenSince(j.first) {
		w.blocks.put(j.version, b, w.blocks.at(b, j.first-1))
	}
	for _, t := range w.transactions.writtenSince(j.first) {
		w.transactions.put(j.version, t, w.transactions.at(t, j.first-1))
	}
	j.accounts = w.accounts.writtenSince(j.first)
	j.mints = w.mints.writtenSince(j.first)
	j.collectBases(w)
}

func (j *rollback) collectBases(w writer) {
	j.bases = make(map[ledger.Pubkey][]baseWrite)
	for _, b := range w.bases {
		if b.version < j.first {
			continue
		}
		taught := ledger.TaughtByBase(b.base.Slot)
		for i := range b.base.Accounts {
			write := &b.base.Accounts[i]
			if w.owns(write.Pubkey.Prefix()) {
				j.bases[write.Pubkey] = append(j.bases[write.Pubkey], baseWrite{write: write, taught: taught})
			}
		}
		for i := range b.base.Mints {
			m := &b.base.Mints[i]
			if w.owns(m.Pubkey.Prefix()) {
				j.bases[m.Pubkey] = append(j.bases[m.Pubkey], baseWrite{mint: &m.Mint, taught: taught})
			}
		}
	}
}

func (j *rollback) restoreAccount(w writer, key *ledger.Account) {
	now := w.accounts.at(key, newest)
	before := w.accounts.at(key, j.first-1)
	for _, b := range j.bases[key.Pubkey] {
		if b.write != nil {
			before = ledger.Merge(before, b.write, b.taught)
		}
	}
	if now == nil && before == nil {
		return
	}
	switch changed := w.setAccount(now, before); {
	case changed:
		j.result.Updates = append(j.result.Updates, updateOf(now, before))
	case before != nil:
		j.result.Unchanged = append(j.result.Unchanged, *before)
	default:
		j.result.Unchanged = append(j.result.Unchanged, ledger.Account{Pubkey: key.Pubkey})
	}
}

func (j *rollback) restoreMint(w writer, key *mintFacts) {
	now := w.mintAt(&key.pubkey, newest)
	before := w.mintAt(&key.pubkey, j.first-1)
	for _, b := range j.bases[key.pubkey] {
		switch {
		case b.mint != nil:
			before = ledger.MergeMint(before, *b.mint, b.taught)
		case b.write.Known&ledger.FieldMint != 0 && b.write.Mint != nil:
			before = ledger.MergeMint(before, *b.write.Mint, b.taught)
		}
	}
	w.setMint(key.pubkey, now, before)
}
