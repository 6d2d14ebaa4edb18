package packed

import "ledgerd/engine/ledger"

// loader fills an empty base with accounts in key order and builds the indexes at the end.
type loader struct {
	base              *Base
	programs, wallets []member
}

// Loader returns a loader for about size accounts.
func (b *Base) Loader(size int) *loader {
	return &loader{base: b, programs: make([]member, 0, size+size/64)} // nearly every account has a known program
}

// Add packs an account. Its key must be above all before.
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

// Finish builds the indexes. The base must not be used before.
func (l *loader) Finish() {
	Pack(l.base.byKey.listings)
	l.base.programs.load(byGroup(l.programs))
	l.base.wallets.load(byGroup(l.wallets))
}
