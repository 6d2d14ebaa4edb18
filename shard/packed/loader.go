package packed

import "ledgerd/engine/ledger"

// Loader fills an empty base with accounts in key order, and makes the indexes when all are there.
type loader struct {
	base              *Base
	programs, wallets []member
}

// Loader returns one for about so many accounts.
func (b *Base) Loader(size int) *loader {
	return &loader{base: b, programs: make([]member, 0, size+size/64)} // nearly every account is a program's
}

// Add packs an account, whose key is above those before.
func (l *loader) Add(a *ledger.Account) {
	r := l.base.store.put(a)
	l.base.byKey.listings.Load(listingOf(a.Pubkey.Prefix(), r))
	start := uint32(a.Pubkey.Prefix() >> 32)
	if program, ok := l.base.store.records.At(r).program(); ok {
		l.programs = append(l.programs, member{uint32(program), start, r})
	}
	if wallet, ok := l.base.Wallet(r); ok {
		l.wallets = append(l.wallets, member{walletGroup(wallet), start, r})
	}
}

// Finish makes the indexes. Nothing is read or written before.
func (l *loader) Finish() {
	Pack(l.base.byKey.listings)
	l.base.programs.load(byGroup(l.programs))
	l.base.wallets.load(byGroup(l.wallets))
}
