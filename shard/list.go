package shard

import (
	"time"

	"ledgerd/engine/ledger"
)

// pageKeys is how many keys one query looks at: a long list is many queries at one
// version, so that it never holds up the others and pins nothing.
const pageKeys = 256

// pageSpare is how many keys more than accounts are wanted one query looks at: some may have left.
const pageSpare = 16

// Page is a part of a list in pubkey order.
type Page struct {
	Accounts []ledger.Account
	// Next is the last key looked at; the list goes on after it unless Done.
	Next ledger.Opt[ledger.Pubkey]
	Done bool
}

// Members names one list of accounts.
type Members struct {
	Group    ledger.Pubkey
	ByWallet bool // token accounts of a wallet, else accounts of a program
}

// List returns the next members past the key at version v, at most limit of them, behind the
// accounts given: it takes the room that is behind these, and the asker does not touch it any more
// after an error. It may return fewer, even none, without being done.
func (s *Shard) List(m Members, after ledger.Opt[ledger.Pubkey], limit int, v ledger.Version, deadline time.Time, to []ledger.Account) (Page, error) {
	return askAt(s, v, deadline, func(st *state) Page {
		page := Page{Accounts: to}
		st.accounts.members(&page, m, after, limit, v)
		return page
	})
}

// Scan returns the next live accounts past the key at version v, whatever they are.
func (s *Shard) Scan(after ledger.Opt[ledger.Pubkey], v ledger.Version, deadline time.Time) (Page, error) {
	return askAt(s, v, deadline, func(st *state) Page {
		page := Page{Done: true}
		looked := 0
		st.accounts.ascend(&after.Value, v, func(a *ledger.Account) bool {
			if after.Known && a.Pubkey == after.Value {
				return true
			}
			if looked == pageKeys {
				page.Done = false
				return false
			}
			looked++
			page.Next = ledger.Some(a.Pubkey)
			if a.Exists() {
				page.Accounts = append(page.Accounts, kept(a))
			}
			return true
		})
		return page
	})
}

// MintPage is a part of the mint table in pubkey order.
type MintPage struct {
	Mints []ledger.MintWrite
	Done  bool
}

// ScanMints returns the next mint facts past the key at version v.
func (s *Shard) ScanMints(after ledger.Opt[ledger.Pubkey], v ledger.Version, deadline time.Time) (MintPage, error) {
	return askAt(s, v, deadline, func(st *state) MintPage {
		page := MintPage{Done: true}
		st.mints.ascend(&after.Value, v, func(m *mintFacts) bool {
			if after.Known && m.pubkey == after.Value {
				return true
			}
			if len(page.Mints) == pageKeys {
				page.Done = false
				return false
			}
			page.Mints = append(page.Mints, ledger.MintWrite{Pubkey: m.pubkey, Mint: m.mint})
			return true
		})
		return page
	})
}
