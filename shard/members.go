package shard

import "ledgerd/engine/ledger"

// members calls visit for every account past the key that may be of the group, all of them if
// the key is not known, in pubkey order, until visit returns false. Where the base lists
// the account it gives the record, else 0.
func (t *accounts) members(m Members, after ledger.Opt[ledger.Pubkey], visit func(key *ledger.Pubkey, r ref) bool) {
	x, listed := t.programs, &t.base.programs
	group, inBase := uint32(0), true
	if m.ByWallet {
		x, listed, group = t.holders, &t.base.wallets, walletGroup(&m.Group)
	} else {
		var name ref
		name, inBase = t.base.vault.keys.find(&m.Group)
		group = uint32(name)
	}
	over := x.tree.Iter()
	defer over.Release()
	more := over.Seek(membership{m.Group, after.Value})
	// next reports whether the overlay lists another, which it leaves in key.
	var key ledger.Pubkey
	next := func() bool {
		for ; more && over.Item().group == m.Group; more = over.Next() {
			if key = over.Item().member; !after.Known || key != after.Value {
				more = over.Next()
				return true
			}
		}
		more = false
		return false
	}
	hasOver, stopped := next(), false
	if inBase {
		from := after.Value
		listed.ascend(grouped(group, &from), &from, func(number uint64, r ref) bool {
			if uint32(number>>32) != group {
				return false
			}
			member := &t.base.vault.records.at(r).key
			if after.Known && *member == after.Value {
				return true
			}
			for hasOver {
				order := key.Compare(member)
				if order > 0 {
					break
				}
				if order == 0 {
					hasOver = next()
					break
				}
				if !visit(&key, 0) {
					stopped = true
					return false
				}
				hasOver = next()
			}
			stopped = !visit(member, r)
			return !stopped
		})
	}
	for ; hasOver && !stopped; hasOver = next() {
		stopped = !visit(&key, 0)
	}
}

// memberAt adds an account to a page if it is of the group at version v. The record is what the
// base lists, 0 if it lists none.
func (t *accounts) memberAt(page *Page, m Members, key *ledger.Pubkey, r ref, v ledger.Version) {
	t.probe.Pubkey = *key
	a, over := t.over(&t.probe, v)
	switch {
	case over && a == nil:
		return
	case over:
		of := grouping(byProgram)
		if m.ByWallet {
			of = byWallet
		}
		if group, ok := of(a); ok && group == m.Group {
			page.Accounts = append(page.Accounts, *a)
		}
	case r != 0:
		if wallet, _ := t.base.vault.wallet(r); m.ByWallet && *wallet != m.Group {
			return // of one that shares its hash
		}
		page.Accounts = append(page.Accounts, ledger.Account{})
		t.base.vault.unpack(r, &page.Accounts[len(page.Accounts)-1], &t.room)
	}
}
