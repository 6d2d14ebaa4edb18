package shard

import "ledgerd/engine/ledger"

// accounts is the versioned map of accounts: an overlay above a packed base, and what lists the
// members of programs and wallets in both. Only the shard's goroutine uses it.
type accounts struct {
	*overlay[ledger.Account]
	base     *base
	programs *index // of the overlay: program → accounts
	holders  *index // of the overlay: wallet → token accounts

	probe ledger.Account // a key for look-ups
	room  room           // of the accounts that are unpacked to live on

	gathered []ref // room for the records of a page
}

func newAccounts() *accounts {
	return &accounts{
		overlay: newOverlay(keyed[ledger.Account]{
			prefix:  func(a *ledger.Account) uint64 { return a.Pubkey.Prefix() },
			compare: func(a, b *ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) },
		}),
		base:     newBase(),
		programs: newIndex(), holders: newIndex(),
		gathered: make([]ref, 0, pageKeys+1),
	}
}

// read returns the account of key at version v, nil if nothing is held, and whether it is the
// overlay's. What is the base's is unpacked into the room given.
func (t *accounts) read(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) (a *ledger.Account, over bool) {
	t.probe.Pubkey = *key
	if a, over = t.over(&t.probe, v); over {
		return a, true
	}
	r := t.base.get(key)
	if r == 0 {
		return nil, false
	}
	t.base.vault.unpack(r, into, &t.room)
	return into, false
}

// readShown makes into the account of key at version v without what it would point at, and
// reports whether anything is held. It allocates nothing.
func (t *accounts) readShown(key *ledger.Pubkey, v ledger.Version, into *ledger.Account) bool {
	t.probe.Pubkey = *key
	if a, over := t.over(&t.probe, v); over {
		if a == nil {
			return false
		}
		*into = *a
		into.Token, into.Earlier = nil, nil
		return true
	}
	r := t.base.get(key)
	if r != 0 {
		t.base.vault.unpackShown(r, into)
	}
	return r != 0
}

// write puts an account as of version v, nil for none; before is what was held until then.
func (t *accounts) write(v ledger.Version, before, after *ledger.Account) {
	key := after
	if after == nil {
		key = before
	}
	t.put(v, key, after)
	t.enlist(t.programs, byProgram, before, after)
	t.enlist(t.holders, byWallet, before, after)
}

// enlist makes an account findable under its new group. What it was before stays findable until
// no version that can still be read supports it.
func (t *accounts) enlist(x *index, of grouping, before, after *ledger.Account) {
	if after == nil {
		return
	}
	is, has := of(after)
	if !has {
		return
	}
	if before != nil {
		// As it did not change, the overlay lists it already or the base does; and the base goes on
		// to for as long as it is not folded up to a version of another group.
		if was, had := of(before); had && was == is {
			return
		}
	}
	x.insert(is, after.Pubkey)
}

// fold moves accounts of versions up to v into the base, as overlay.foldCells does. It calls
// settled with each that is now there.
func (t *accounts) fold(v ledger.Version, budget int, settled func(now *ledger.Account)) (more bool) {
	return t.foldCells(v, budget, func(now cell[ledger.Account], run []cell[ledger.Account]) {
		if now.absent {
			t.base.remove(&now.value.Pubkey)
		} else {
			t.base.set(now.value)
			settled(now.value)
		}
		for _, c := range run {
			if !c.absent {
				t.unlist(t.programs, byProgram, c.value)
				t.unlist(t.holders, byWallet, c.value)
			}
		}
	})
}

// unlist removes what the overlay lists of a value that left it, unless a newer version of the
// account still supports it. The base lists its own.
func (t *accounts) unlist(x *index, of grouping, left *ledger.Account) {
	if x.tree.Len() == 0 {
		return
	}
	group, ok := of(left)
	if !ok {
		return
	}
	supported := false
	t.versions(left, func(a *ledger.Account) bool {
		g, ok := of(a)
		supported = ok && g == group
		return !supported
	})
	if !supported {
		x.remove(group, left.Pubkey)
	}
}

// shed lets all go of what is not listed any more.
func (t *accounts) shed() {
	shed(&t.ofCells, t.cells)
	t.programs.shed()
	t.holders.shed()
	t.base.drain(shedAfter)
}

// ascend calls visit, in key order, for every account at version v whose key is not below from,
// until it returns false. An account is good until visit returns.
func (t *accounts) ascend(from *ledger.Pubkey, v ledger.Version, visit func(*ledger.Account) bool) {
	ascend(t.overlay, &t.base.vault.view, &t.base.byKey, from, v, visit)
}

func ascend(over *overlay[ledger.Account], view *view, base *tree, from *ledger.Pubkey, v ledger.Version, visit func(*ledger.Account) bool) {
	probe := ledger.Account{Pubkey: *from}
	var a ledger.Account
	room := room{reused: true}
	over.ascendOver(&probe, v, func(each func(uint64, *ledger.Account) bool) {
		base.ascend(from.Prefix(), from, func(prefix uint64, r ref) bool {
			view.unpack(r, &a, &room)
			return each(prefix, &a)
		})
	}, visit)
}

// kept returns a copy of an account that lives on.
func kept(a *ledger.Account) ledger.Account {
	c := *a
	if a.Token != nil {
		t := *a.Token
		c.Token = &t
	}
	if a.Earlier != nil {
		e := *a.Earlier
		c.Earlier = &e
	}
	return c
}

// same reports whether two accounts are alike in all there is to them.
func same(a, b *ledger.Account) bool {
	if (a.Token == nil) != (b.Token == nil) || (a.Earlier == nil) != (b.Earlier == nil) {
		return false
	}
	if a.Token != nil && *a.Token != *b.Token || a.Earlier != nil && *a.Earlier != *b.Earlier {
		return false
	}
	x, y := *a, *b
	x.Token, y.Token, x.Earlier, y.Earlier = nil, nil, nil, nil
	return x == y
}
