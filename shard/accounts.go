package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// accounts is the versioned map of accounts: an overlay above a packed base, each with its indexes.
// Shard.mu guards it.
type accounts struct {
	overlay *versions
	base    *packed.Base
	index   index // of the overlay

	folding ledger.Account // scratch of foldOldest
	loaded  uint64         // the sum of what fold prefetched, so that the reads are not optimized away
}

// newAccounts returns an empty map that lists the same groups as packed.New(kinds).
func newAccounts(kinds packed.Kind) *accounts {
	return &accounts{overlay: new(versions), base: packed.New(kinds), index: newIndex()}
}

// at returns where the value of a key at version v is.
func (t *accounts) at(key *ledger.Pubkey, v ledger.Version) location {
	l := location{hash: arena.HashOf(key)}
	if l.head = t.overlay.visible(l.hash, key, v); l.head == 0 {
		l.base = t.base.Get(key)
	}
	return l
}

// unpack sets *into to the account at l and returns into, or nil if there is no account.
// What *into points at is valid until the next call.
func (t *accounts) unpack(l location, into *ledger.Account) *ledger.Account {
	switch {
	case l.head != 0:
		return t.overlay.account(l.head, into)
	case l.base != 0:
		t.base.Unpack(l.base, into)
		return into
	}
	return nil
}

// unpackCopy is unpack for a caller that keeps the account: what *into points at belongs to the caller or never changes.
// Several goroutines may call it at once.
func (t *accounts) unpackCopy(l location, into *ledger.Account) *ledger.Account {
	if l.head == 0 && l.base != 0 {
		t.base.UnpackCopy(l.base, into)
		return into
	}
	return t.unpack(l, into)
}

// readShallow sets *into to the account of key at version v, without Token, Data and FieldProvenance: Token and Data would
// cost one more cache miss each. It reports whether there is an account and allocates nothing.
func (t *accounts) readShallow(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) bool {
	switch l := t.at(key, v); {
	case l.head != 0:
		a := t.overlay.account(l.head, into)
		into.Token, into.Data, into.FieldProvenance = nil, ledger.Data{}, nil
		return a != nil
	case l.base != 0:
		t.base.UnpackShallow(l.base, into)
		return true
	}
	return false
}

// term returns the state hash of a, the newest account of the key at l; a is nil for none. It uses the hash that the
// overlay stored, if there is one.
func (t *accounts) term(l location, a *ledger.Account) ledger.StateHash {
	if l.head != 0 {
		if term := t.overlay.cells.at(l.head).term; term != (ledger.StateHash{}) {
			return term
		}
	}
	return a.StateTerm()
}

// write adds account after, nil for none, to the overlay as of version v. l is where its key was found, before is
// the account until then.
func (t *accounts) write(l location, v ledger.Version, key *ledger.Pubkey, before, after *ledger.Account) *cell {
	c := t.overlay.add(l, v, key, after)
	for k := range t.base.ListedKinds() {
		// While the group is unchanged, the base or an older value keeps the account listed.
		if is := k.Of(after); is != nil && !packed.SameKey(k.Of(before), is) {
			t.index.insert(packed.Group{Kind: k, Key: *is}, *key)
			c.listed[k] = true
		}
	}
	return c
}

// page appends to to, in pubkey order, the first live accounts after a key that are in group g at version v and that match
// where, at most limit of them. If where is nil, all accounts match.
func (t *accounts) page(g packed.Group, where *ledger.DataFilter, after ledger.Opt[ledger.Pubkey], limit int, v ledger.Version, to []ledger.Account) Page {
	page := Page{Accounts: to}
	maxKeys := pageKeys
	if where == nil {
		maxKeys = min(maxKeys, limit+pageSpare)
	}
	refs := t.base.Members(g, after, maxKeys+1)
	keys := t.index.members(g, after, maxKeys+1)
	if page.Accounts == nil {
		page.Accounts = make([]ledger.Account, 0, min(len(refs), maxKeys, limit))
	}
	full := len(page.Accounts) + limit
	for examined := 0; len(refs)+len(keys) > 0; examined++ {
		if examined == maxKeys || len(page.Accounts) == full {
			return page
		}
		var key ledger.Pubkey
		var l location
		if len(keys) == 0 || len(refs) > 0 && t.base.Key(refs[0]).Compare(&keys[0]) <= 0 {
			key, l.base, refs = *t.base.Key(refs[0]), refs[0], refs[1:]
		}
		if len(keys) > 0 && (l.base == 0 || key == keys[0]) {
			key, keys = keys[0], keys[1:]
		}
		l.head = t.overlay.visible(arena.HashOf(&key), &key, v)
		t.addMember(&page, g, where, l)
		page.Next = ledger.Some(key)
	}
	page.Done = true
	return page
}

// addMember appends the account at l to a page if it is live, in the group and matches where.
func (t *accounts) addMember(page *Page, g packed.Group, where *ledger.DataFilter, l location) {
	n := len(page.Accounts)
	page.Accounts = append(page.Accounts, ledger.Account{})
	a := t.unpack(l, &page.Accounts[n])
	matches := packed.SameKey(g.Of(a), &g.Key) && a.Exists()
	if matches && where != nil {
		page.DataUnknown = page.DataUnknown || a.Known&ledger.FieldData == 0
		matches = where.Match(a)
	}
	if !matches {
		page.Accounts = page.Accounts[:n]
		return
	}
	t.unpackCopy(l, a) // the page keeps it
}
