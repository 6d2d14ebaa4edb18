package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// members appends to a page the accounts past a key that are in a group at version v, in pubkey order,
// at most limit of them.
func (t *accounts) members(page *Page, m Members, after ledger.Opt[ledger.Pubkey], limit int, v ledger.Version) {
	look := min(pageKeys, limit+pageSpare)
	refs := t.base.Members(t.pageRefs[:0], &m.Group, m.ByWallet, after, look+1)
	over := t.listedOver(m, after)
	defer over.Release()
	if page.Accounts == nil {
		page.Accounts = make([]ledger.Account, 0, min(len(refs), look, limit))
	}
	most, looked := len(page.Accounts)+limit, 0
	var key ledger.Pubkey
	for ; ; looked++ {
		var listed *ledger.Pubkey
		if len(refs) > 0 {
			listed = t.base.Key(refs[0])
		}
		other := over.next()
		page.Done = listed == nil && other == nil
		if page.Done || looked == look || len(page.Accounts) == most {
			break
		}
		order := -1
		switch {
		case listed == nil:
			order = 1
		case other != nil:
			order = listed.Compare(other)
		}
		var r arena.Ref
		if order > 0 {
			key = *other
		} else {
			key, r, refs = *listed, refs[0], refs[1:]
		}
		if order >= 0 {
			over.taken()
		}
		t.memberAt(page, m, &key, r, v)
	}
	if looked > 0 {
		page.Next = ledger.Some(key)
	}
}

// memberAt appends an account to a page if it is in the group at version v. r is the record that the
// index of the base lists, 0 if it lists none.
func (t *accounts) memberAt(page *Page, m Members, key *ledger.Pubkey, r arena.Ref, v ledger.Version) {
	over := t.over(key, v)
	switch {
	case over != nil:
		group, ok := over.program()
		if m.ByWallet {
			group, ok = t.overlay.wallet(over)
		}
		if ok && *group == m.Group {
			page.Accounts = append(page.Accounts, ledger.Account{})
			t.overlay.unpack(over, &page.Accounts[len(page.Accounts)-1])
		}
	case r != 0:
		if wallet, _ := t.base.Wallet(r); m.ByWallet && *wallet != m.Group {
			return // a wallet with the same hash
		}
		page.Accounts = append(page.Accounts, ledger.Account{})
		t.base.Unpack(r, &page.Accounts[len(page.Accounts)-1], &t.slab)
	}
}

// listedOver is an iterator over what the overlay lists under a group past a key.
type listedOver struct {
	btree.IterG[membership]
	group ledger.Pubkey
	after ledger.Opt[ledger.Pubkey]
	item  membership
	more  bool
}

func (t *accounts) listedOver(m Members, after ledger.Opt[ledger.Pubkey]) listedOver {
	x := t.programs
	if m.ByWallet {
		x = t.holders
	}
	w := listedOver{IterG: x.tree.Iter(), group: m.Group, after: after}
	if w.more = w.Seek(membership{m.Group, after.Value}); w.more {
		w.item = w.Item()
		if after.Known && w.item == (membership{m.Group, after.Value}) {
			w.taken()
		}
	}
	return w
}

// next returns the key of the current account, nil if there is none. taken moves on to the next.
func (w *listedOver) next() *ledger.Pubkey {
	if !w.more || w.item.group != w.group {
		return nil
	}
	return &w.item.member
}

func (w *listedOver) taken() {
	if w.more = w.Next(); w.more {
		w.item = w.Item()
	}
}
