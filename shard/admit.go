package shard

import "ledgerd/engine/ledger"

// The filter is applied where a record is applied to the state, because only there both the account before the
// record and the account after it are known. It decides once for each account of a record, after all writes of that
// account. The log holds unfiltered records, so another branch and a replay apply the filter anew. Its
// decision does not depend on the number of shards.

// admitted returns the account to store when a record turns before into after; each is nil for none.
// An account that is stored stays stored. An account that is not stored and that the filter does not admit
// stays out, and its tombstone is dropped, since the account is not closed any more.
//
// The filter does not apply to mint facts: a stored token account needs those of its mint, which is
// another account and may belong to another shard.
func (s *state) admitted(before, after *ledger.Account) *ledger.Account {
	switch f := s.filter; {
	case f == nil, after == before, after == nil, before != nil && before.Exists():
		return after
	case f.Lists(&after.Pubkey):
		return after
	case !after.Exists():
		return before // closed, and never stored
	case f.Admits(after):
		return after
	}
	return nil
}

// droppedSince reports whether value, the newest of a key, says that there is no account and was written at version first
// or later: readers may have seen an account in between. Without a filter it returns false, since a closed account leaves a
// tombstone.
func (s *state) droppedSince(value position, first ledger.Version) bool {
	if s.filter == nil || value == 0 {
		return false
	}
	c := s.accounts.overlay.cells.at(value)
	return c.absent && c.version >= first
}
