package nodejson

import "ledgerd/engine/ledger"

// blockWrites gathers the account writes of one block and folds them to the last state of
// each account: what a block taught is its state at the end of the block.
type blockWrites struct {
	accounts []ledger.AccountWrite
	mints    []ledger.MintWrite
	last     map[ledger.Pubkey]int // the newest write of a key, in accounts
	mintAt   map[ledger.Pubkey]int // in mints

	saysReads bool // writes say which accounts are only read
}

func newBlockWrites() *blockWrites {
	return &blockWrites{last: make(map[ledger.Pubkey]int), mintAt: make(map[ledger.Pubkey]int)}
}

// add records what happened next to an account.
//
// Where one write cannot say what both do, they stand beside each other: after a close, as
// the account forgets its fields in between; and where another holding replaces one, or
// nothing, as what was known of a holding before the block is then forgotten.
func (s *blockWrites) add(w ledger.AccountWrite) {
	if w.Lamports == 0 {
		w = ledger.AccountWrite{Pubkey: w.Pubkey} // whatever else it shows is gone
	}
	if i, ok := s.last[w.Pubkey]; ok && fold(&s.accounts[i], &w) {
		return
	}
	s.last[w.Pubkey] = len(s.accounts)
	s.accounts = append(s.accounts, w)
}

// fold changes old to the state after both writes, if one write can say it.
func fold(old, w *ledger.AccountWrite) bool {
	switch {
	case w.Lamports == 0:
		*old = *w
		return true
	case old.Lamports == 0:
		return false
	case w.Token != nil && old.Known&ledger.FieldToken != 0 && !sameHolding(old, w):
		return false
	}
	old.Lamports = w.Lamports
	old.ReadOnly = old.ReadOnly && w.ReadOnly
	if w.Known&ledger.FieldOwner != 0 {
		old.Owner = w.Owner
	}
	if w.Known&ledger.FieldToken != 0 {
		old.Token, old.TokenOwnerUnknown = foldToken(old, w)
	}
	old.Known |= w.Known
	return true
}

// sameHolding reports whether w shows the same wallet's holding of the same mint as old, as far
// as both know the wallet.
func sameHolding(old, w *ledger.AccountWrite) bool {
	return old.Token != nil && old.Token.Mint == w.Token.Mint &&
		(old.TokenOwnerUnknown || w.TokenOwnerUnknown || old.Token.Owner == w.Token.Owner)
}

// foldToken returns the token facts after both writes. A balance without its wallet changes
// the amount of a holding that the block has shown with its wallet before.
func foldToken(old, w *ledger.AccountWrite) (t *ledger.TokenAccount, ownerUnknown bool) {
	if w.Token == nil || !w.TokenOwnerUnknown || old.Token == nil || old.TokenOwnerUnknown {
		return w.Token, w.TokenOwnerUnknown
	}
	after := *old.Token
	after.Amount = w.Token.Amount
	return &after, false
}

// learnMint records what a token balance shows of its mint.
func (s *blockWrites) learnMint(mint ledger.Pubkey, facts ledger.Mint) {
	i, ok := s.mintAt[mint]
	if !ok {
		s.mintAt[mint] = len(s.mints)
		s.mints = append(s.mints, ledger.MintWrite{Pubkey: mint, Mint: facts})
		return
	}
	known := &s.mints[i].Mint
	known.Decimals = facts.Decimals
	if facts.Scaled.Known {
		known.Scaled = facts.Scaled
	}
}
