package shard

import "ledgerd/engine/ledger"

// loader fills an empty base with accounts in key order, and makes the indexes when all are there.
type loader struct {
	base              *base
	programs, wallets []member
}

// loader returns one for about so many accounts.
func (b *base) loader(size int) *loader {
	return &loader{base: b, programs: make([]member, 0, size+size/64)} // nearly every account is a program's
}

// add packs an account, whose key is above those before.
func (l *loader) add(a *ledger.Account) {
	r := l.base.store.put(a)
	l.base.byKey.listings.Load(listingOf(a.Pubkey.Prefix(), r))
	start := uint32(a.Pubkey.Prefix() >> 32)
	if program, ok := l.base.store.records.At(r).program(); ok {
		l.programs = append(l.programs, member{uint32(program), start, r})
	}
	if wallet, ok := l.base.wallet(r); ok {
		l.wallets = append(l.wallets, member{walletGroup(wallet), start, r})
	}
}

// finish makes the indexes. Nothing is read or written before.
func (l *loader) finish() {
	pack(l.base.byKey.listings)
	l.base.programs.load(byGroup(l.programs))
	l.base.wallets.load(byGroup(l.wallets))
}
