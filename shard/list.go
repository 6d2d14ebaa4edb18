package shard

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// pageKeys bounds the keys that one query examines. A caller reads a long list with many queries at one
// version, so the list does not delay other queries and pins nothing.
const pageKeys = 256

// pageSpare is how many keys beyond its limit one query examines, since some accounts may have left the group.
const pageSpare = 16

// Page is a part of a list in pubkey order.
type Page struct {
	Accounts []ledger.Account
	// Next is the last key that the query examined. Unless Done, the next page starts after it.
	Next ledger.Opt[ledger.Pubkey]
	Done bool
	// DataUnknown says that accounts were left out because their data is not known.
	DataUnknown bool
}

// Kind is a kind of list.
type Kind = packed.Kind

// What accounts are listed by.
const (
	ByProgram  = packed.ByProgram
	ByWallet   = packed.ByWallet
	ByDelegate = packed.ByDelegate
	ByMint     = packed.ByMint // only after IndexMints
)

// Members names one list of accounts.
type Members struct {
	Group ledger.Pubkey
	By    packed.Kind
	// Where selects the accounts that are listed; nil selects all.
	Where *ledger.DataFilter
}

// List appends the first members after a key at version v, at most limit of them, to to. It uses the
// capacity of to; after an error the shard may still write there, so the caller must not reuse to.
// It may return fewer accounts, even none, although Done is false.
func (s *Shard) List(m Members, after ledger.Opt[ledger.Pubkey], limit int, v ledger.Version, deadline time.Time, to []ledger.Account) (Page, error) {
	g := packed.Group{Kind: m.By, Key: m.Group}
	return queryAt(s, v, deadline, func(st *state) Page { return st.accounts.page(g, m.Where, after, limit, v, to) })
}
