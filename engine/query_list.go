package engine

import (
	"slices"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/giveway"
)

// list is a page of accounts, and whether the list has more.
type list struct {
	accounts []ledger.Account
	more     bool
}

// Program returns the accounts a program is known to own, in pubkey order, past a key if
// one is given, and whether there are more. View.Lacks says whether some may be missing, because a filter excludes
// them or the source shows only accounts that are written. If neither an account at the program's key nor
// an account it owns is held, it returns a *ledger.NotFoundError.
func (e *Engine) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int) ([]ledger.Account, bool, ledger.View, error) {
	page, v, err := answer(e, q, func(v ledger.View, deadline time.Time) (list, error) {
		return e.members(v, shard.Members{Group: program}, after, limit, deadline)
	})
	v.Lacks = !e.holdsAllOf(program)
	return page.accounts, page.more, v, err
}

// tokenList is a page of token accounts, and whether the list has more.
type tokenList struct {
	tokens []ledger.TokenAnswer
	more   bool
}

// Tokens is Program for the token accounts of a wallet.
func (e *Engine) Tokens(q ledger.Query, owner ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int) ([]ledger.TokenAnswer, bool, ledger.View, error) {
	page, v, err := answer(e, q, func(v ledger.View, deadline time.Time) (tokenList, error) {
		l, err := e.members(v, shard.Members{Group: owner, ByWallet: true}, after, limit, deadline)
		if err != nil {
			return tokenList{}, err
		}
		tokens, err := e.withMints(v, l.accounts, deadline)
		return tokenList{tokens, l.more}, err
	})
	v.Lacks = !e.holdsAllOf(ledger.TokenProgram) || !e.holdsAllOf(ledger.Token2022Program)
	return page.tokens, page.more, v, err
}

// holdsAllOf reports whether every account that a program owns is held.
func (e *Engine) holdsAllOf(program ledger.Pubkey) bool {
	k := e.known.Load()
	return k.showsAll && k.filter.ListsOwner(program)
}

// members reads a list from the shards one after the other; the order of shards is the order of keys.
func (e *Engine) members(v ledger.View, m shard.Members, after ledger.Opt[ledger.Pubkey], limit int, deadline time.Time) (l list, err error) {
	first := 0
	if after.Known {
		first = shard.Of(after.Value.Prefix(), len(e.shards))
	}
	for _, s := range e.shards[first:] {
		page := shard.Page{Next: after}
		for !page.Done {
			// One account more than the limit shows whether the list has more.
			most := limit + 1 - len(l.accounts)
			page, err = s.List(m, page.Next, most, v.Tip().Version, deadline, withCapacity(l.accounts, most))
			if err != nil {
				return list{}, err
			}
			l.accounts = page.Accounts
			if len(l.accounts) > limit {
				return list{l.accounts[:limit], true}, nil
			}
			giveway.Turn()
		}
	}
	if len(l.accounts) == 0 {
		return l, e.knowsOwner(v, m.Group, deadline)
	}
	return l, nil
}

// withCapacity returns accounts with capacity for at most most more. A list that is already long gets four times its
// length, so that few accounts are copied and the shards do not have to grow it.
func withCapacity(accounts []ledger.Account, most int) []ledger.Account {
	if free := cap(accounts) - len(accounts); len(accounts) > 0 && free < min(most, len(accounts)) {
		return slices.Grow(accounts, min(most, 4*len(accounts)))
	}
	return accounts
}

// knowsOwner returns nil if an account at key, or one that key owns as a program or wallet, is held; otherwise a
// *ledger.NotFoundError.
func (e *Engine) knowsOwner(v ledger.View, key ledger.Pubkey, deadline time.Time) error {
	a, found, err := e.ownerOf(&key).Account(key, v.Tip().Version, deadline)
	if err != nil || found && a.Exists() {
		return err
	}
	for _, s := range e.shards {
		for _, byWallet := range []bool{false, true} {
			var page shard.Page
			for !page.Done && len(page.Accounts) == 0 {
				page, err = s.List(shard.Members{Group: key, ByWallet: byWallet}, page.Next, 1, v.Tip().Version, deadline, nil)
				if err != nil {
					return err
				}
			}
			if len(page.Accounts) > 0 {
				return nil
			}
		}
	}
	if !e.known.Load().info.Complete {
		return &ledger.NotFoundError{Absence: ledger.OwnerNotIndexed}
	}
	return &ledger.NotFoundError{Absence: ledger.OwnerNotFound}
}

// withMints adds the facts of their mints to token accounts.
func (e *Engine) withMints(v ledger.View, accounts []ledger.Account, deadline time.Time) ([]ledger.TokenAnswer, error) {
	var keys []ledger.Pubkey
	index := make(map[ledger.Pubkey]int) // into keys
	for i := range accounts {
		mint := accounts[i].Token.Mint
		if _, known := index[mint]; !known {
			index[mint] = len(keys)
			keys = append(keys, mint)
		}
	}
	mints, err := e.mints(v, keys, deadline)
	if err != nil {
		return nil, err
	}
	tokens := make([]ledger.TokenAnswer, len(accounts))
	for i, a := range accounts {
		tokens[i] = ledger.TokenAnswer{Account: a, Mint: mints[index[a.Token.Mint]]}
	}
	return tokens, nil
}
