package shard

import (
	"maps"
	"reflect"
	"slices"

	"ledgerd/engine/ledger"
)

// model is what shards should hold, as maps for each version that is not folded.
type model struct {
	versions       map[ledger.Version]*plain
	newest, folded ledger.Version
	bases          []baseChange // not folded
	filter         *ledger.Filter
}

// plain is the content of a ledger at one version. It does not change once it is in a model.
type plain struct {
	accounts map[ledger.Pubkey]*ledger.Account
	mints    map[ledger.Pubkey]*ledger.Mint
}

func newModel() *model {
	empty := &plain{make(map[ledger.Pubkey]*ledger.Account), make(map[ledger.Pubkey]*ledger.Mint)}
	return &model{versions: map[ledger.Version]*plain{0: empty}}
}

func (p *plain) clone() *plain { return &plain{maps.Clone(p.accounts), maps.Clone(p.mints)} }

// write applies a block or base state to p. Then it applies the filter.
func (p *plain) write(f *ledger.Filter, accounts []ledger.AccountWrite, mints []ledger.MintWrite, by ledger.Provenance) {
	last := maps.Clone(p.accounts)
	for i := range accounts {
		w := &accounts[i]
		before := p.accounts[w.Pubkey]
		switch mint := p.mints[w.Pubkey]; {
		case w.Lamports == 0:
			put(p.mints, w.Pubkey, ledger.MintAfter(before, mint, nil, true, by))
		case w.Known&ledger.FieldMint != 0:
			put(p.mints, w.Pubkey, ledger.MintAfter(before, mint, w.Mint, false, by))
		}
		put(p.accounts, w.Pubkey, ledger.Merge(before, w, by))
	}
	for i := range mints {
		k := mints[i].Pubkey
		put(p.mints, k, ledger.MintAfter(p.accounts[k], p.mints[k], &mints[i].Mint, false, by))
	}
	for i := range accounts {
		k := accounts[i].Pubkey
		switch before, after := last[k], p.accounts[k]; {
		case after == before || after == nil || before != nil && before.Exists() || f == nil || f.Lists(&k):
		case !after.Exists():
			put(p.accounts, k, before)
		case !f.Admits(after):
			delete(p.accounts, k)
		}
	}
}

func put[V any](m map[ledger.Pubkey]*V, k ledger.Pubkey, v *V) {
	if m[k] = v; v == nil {
		delete(m, k)
	}
}

func (m *model) block(v ledger.Version, b *ledger.Block) *Applied {
	next := m.versions[m.newest].clone()
	next.write(m.filter, b.Accounts, b.Mints, ledger.BlockProvenance(b.Slot))
	return m.add(v, next, nil)
}

func (m *model) base(v ledger.Version, b *ledger.BaseState, direct bool) *Applied {
	next := m.versions[m.newest].clone()
	next.write(m.filter, b.Accounts, b.Mints, ledger.BaseProvenance(b.Slot))
	applied := m.add(v, next, nil)
	applied.Updates = nil
	if !direct {
		m.bases = append(m.bases, baseChange{at: Point{Version: v}, base: b})
	} else {
		m.fold(v, 0)
	}
	return applied
}

func (m *model) rollback(v, first ledger.Version) *Applied {
	restored, next := m.versions[first-1], m.versions[first-1].clone()
	for _, b := range m.bases {
		if b.at.Version >= first {
			next.write(m.filter, b.base.Accounts, b.base.Mints, ledger.BaseProvenance(b.base.Slot))
		}
	}
	return m.add(v, next, restored)
}

// fold forgets versions below to, and tombstones of slots before below.
func (m *model) fold(to ledger.Version, below ledger.Slot) {
	for ; m.folded < to; m.folded++ {
		delete(m.versions, m.folded)
	}
	m.bases = slices.DeleteFunc(m.bases, func(b baseChange) bool { return b.at.Version <= to })
	for k, dead := range m.versions[to].accounts {
		if dead.Exists() || dead.Since.Slot() >= below {
			continue
		}
		for v := to; v <= m.newest && m.versions[v].accounts[k] == dead; v++ {
			m.versions[v] = m.versions[v].clone()
			delete(m.versions[v].accounts, k)
		}
	}
}

// add adds a version and returns what it changed. restored is what a rollback restored before base state was merged in,
// nil for other work.
func (m *model) add(v ledger.Version, next, restored *plain) *Applied {
	applied, last := new(Applied), m.versions[m.newest]
	all := maps.Clone(last.accounts)
	maps.Copy(all, next.accounts)
	for _, k := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		before, after := last.accounts[k], next.accounts[k]
		now := ledger.Account{Pubkey: k}
		if after != nil {
			now = *after
			now.Known &^= ledger.FieldMint
		}
		if !ledger.SameToReaders(before, after) {
			u := ledger.Update{Account: now}
			if owner := ownerOf(before); owner != ownerOf(after) {
				u.OwnerBefore = owner
			}
			if wallet := walletOf(before); wallet != walletOf(after) {
				u.WalletBefore = wallet
			}
			u.DataBefore = ledger.DataBefore(before, &now)
			applied.Updates = append(applied.Updates, u)
		} else if restored != nil && (!reflect.DeepEqual(before, restored.accounts[k]) || after != restored.accounts[k]) {
			applied.Unchanged = append(applied.Unchanged, now)
		}
	}
	applied.Hash = next.hash()
	m.newest = v
	m.versions[v] = next
	return applied
}

func (p *plain) hash() (h ledger.StateHash) {
	for _, a := range p.accounts {
		h.Add(a.StateTerm())
	}
	for k, mint := range p.mints {
		h.Add(mint.StateTerm(k))
	}
	return h
}

func ownerOf(a *ledger.Account) (owner ledger.Opt[ledger.Pubkey]) {
	if a != nil && a.Exists() && a.Known&ledger.FieldOwner != 0 {
		owner = ledger.Some(a.Owner)
	}
	return owner
}

func walletOf(a *ledger.Account) (wallet ledger.Opt[ledger.Pubkey]) {
	if a != nil && a.Exists() && a.Token != nil {
		wallet = ledger.Some(a.Token.Owner)
	}
	return wallet
}

// where returns copies of the accounts for which keep is true, in key order.
func (p *plain) where(keep func(*ledger.Account) bool) (all []ledger.Account) {
	for _, k := range slices.SortedFunc(maps.Keys(p.accounts), compareKeys) {
		if a := p.accounts[k]; keep(a) {
			all = append(all, *a)
		}
	}
	return all
}

func (p *plain) allMints() (all []ledger.MintWrite) {
	for _, k := range slices.SortedFunc(maps.Keys(p.mints), compareKeys) {
		all = append(all, ledger.MintWrite{Pubkey: k, Mint: *p.mints[k]})
	}
	return all
}

// counted returns how many accounts and token accounts are live.
func (p *plain) counted() [2]int64 {
	tokens := p.where(func(a *ledger.Account) bool { return walletOf(a).Known })
	return [2]int64{int64(len(p.where((*ledger.Account).Exists))), int64(len(tokens))}
}
