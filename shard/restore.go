package shard

import "ledgerd/engine/ledger"

// Content is the content of a shard at one version, as read from a snapshot.
type Content struct {
	Version ledger.Version
	// Hash is the shard's part of the state hash. It is not checked, so the parts may be
	// any that sum up to the state hash of the whole ledger.
	Hash ledger.StateHash
	// Size is an estimate of the number of accounts, for which memory is reserved; it may be 0.
	Size int
	// Accounts calls visit for every account of the shard in pubkey order, tombstones
	// included, until it returns false. The shard does not keep the account passed to visit.
	Accounts func(visit func(*ledger.Account) bool) error
	// Mints does the same for mint facts.
	Mints func(visit func(ledger.MintWrite) bool) error
}

// Restore replaces the content of the shard by c; reads below c's version then fail. It must be
// called before Run. Restore does not check the order of c. It returns only the errors of c's functions; after one the shard
// is unchanged.
func (s *Shard) Restore(c Content) error {
	accounts, mints := newAccounts(s.state.accounts.base.ListedKinds()), newMints()
	packing := accounts.base.Loader(c.Size)
	if err := c.Accounts(func(a *ledger.Account) bool { packing.Add(a); return true }); err != nil {
		return err
	}
	packing.Finish()
	if err := c.Mints(func(m ledger.MintWrite) bool {
		mints.tree.Load((&mintFacts{pubkey: m.Pubkey, mint: m.Mint}).entry())
		return true
	}); err != nil {
		return err
	}
	st := s.state
	st.accounts, st.mints, st.bases, st.hash, st.folded = accounts, mints, nil, c.Hash, c.Version
	st.counters.Accounts.Store(int64(accounts.base.Len() - accounts.base.Closed()))
	st.counters.TokenAccounts.Store(int64(accounts.base.TokenAccounts()))
	st.tidy()
	return nil
}
