package shard

import "ledgerd/engine/ledger"

// The filter sits where a record meets the state: what is held before it and what it leads to are
// known here and nowhere else, on every branch and at every replay, and are the same however many
// shards there are. It decides once for a record, by what all its writes of an account lead to. The log
// has the record whole, so that another branch, or a replay, decides by itself.

// admitted returns what comes to be held of an account that stands as before and that a record makes
// what after is; either may be nil. An account that is held is followed on. One that is not, and that
// the filter does not want, stays unheld; and what was known of its end is forgotten, since
// it is not closed any more.
//
// Mint facts are not asked about: a token account that is held needs those of its mint, which is
// another account and may be another shard's.
func (s *state) admitted(before, after *ledger.Account) *ledger.Account {
	switch f := s.filter; {
	case f == nil, after == before, after == nil, before != nil && before.Exists():
		return after
	case f.Lists(&after.Pubkey):
		return after
	case !after.Exists():
		return before // opened and closed at once, or closed where nobody looked
	case f.Admits(after):
		return after
	}
	return nil
}

// noteForgotten notes at the newest value of a key, which says that there is no account, that a block led
// to that: who saw the account before is to be told when the block is undone.
func (t *accounts) noteForgotten(key *ledger.Pubkey) {
	if p := t.overlay.find(key); p.head != 0 {
		t.overlay.written.at(p.head).forgotten = true
	}
}

// wasForgotten reports whether noteForgotten noted that at the newest value where a key was found.
func (t *accounts) wasForgotten(f found) bool {
	return f.head != 0 && t.overlay.written.at(f.head).forgotten
}
