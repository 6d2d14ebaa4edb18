package reader

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/giveway"
)

// page is a part of a list of accounts, and the key after which the next page begins, unknown at the end.
type page struct {
	items       []ledger.Account
	next        ledger.Opt[ledger.Pubkey]
	dataUnknown bool // of accounts that the query passed over
}

// Program returns the accounts that a program is known to own, in pubkey order, after a key if
// one is given, and the key after which the next page begins, unknown at the end. View.Lacks says whether some accounts may be
// missing, because a filter excludes them or the source shows only accounts that are written. If neither an account at the
// program's key nor an account it owns is held, it returns a *ledger.NotFoundError. A page may end before the limit if few accounts
// match Query.Where. The accounts belong to the caller; they are in room if its capacity is
// large enough. After an error a shard may still write there, so the caller must not reuse room.
func (r *Reader) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	p, v, err := r.list(q, shard.Members{Group: program, Where: q.Where}, after, limit, room)
	v.Lacks, v.DataUnknown = !r.holdsAllOf(program), p.dataUnknown
	return p.items, p.next, v, err
}

// tokenLists are what the shards list token accounts by.
var tokenLists = [...]shard.Kind{ledger.OfWallet: shard.ByWallet, ledger.OfDelegate: shard.ByDelegate, ledger.OfMint: shard.ByMint}

// Tokens is Program for the token accounts of owner, which Query.TokensOf says to be a wallet, a delegate or a mint. The list of a
// mint is empty if the shards do not index mints.
func (r *Reader) Tokens(q ledger.Query, owner ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	p, v, err := r.list(q, shard.Members{Group: owner, By: tokenLists[q.TokensOf]}, after, limit, room)
	v.Lacks = !r.holdsAllOf(ledger.TokenProgram) || !r.holdsAllOf(ledger.Token2022Program)
	return p.items, p.next, v, err
}

// list answers a page of a list, in the capacity of room.
func (r *Reader) list(q ledger.Query, m shard.Members, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) (page, ledger.View, error) {
	return answer(r, q, func(v ledger.View, deadline time.Time) (page, error) {
		to := room[:0]
		room = nil // for the next attempt
		return r.members(v, m, after, limit, deadline, to)
	})
}

// holdsAllOf reports whether every account that a program owns is held.
func (r *Reader) holdsAllOf(program ledger.Pubkey) bool {
	c := r.coverage.Load()
	return c.ShowsAll && c.Filter.ListsOwner(program)
}

// turnAfter is how many accounts one read of a shard must find for the query to yield the processor after it. It does not yield after
// less: on a processor that other programs want a yield may last one of their time slices, and a subscriber may query 10,000
// short lists.
const turnAfter = 64

// mostVisits bounds the queries to shards for one page of a list with Query.Where: they examine 65,536 accounts in all, which takes
// some 10 ms.
const mostVisits = 256

// members reads a list from the shards one after the other, into the capacity of to; the order of shards is the order of keys.
func (r *Reader) members(v ledger.View, m shard.Members, after ledger.Opt[ledger.Pubkey], limit int, deadline time.Time, to []ledger.Account) (l page, err error) {
	l.items = to
	first := 0
	if after.Known {
		first = shard.Of(after.Value.Prefix(), len(r.Shards))
	}
	visits, reached := 0, after
	for _, s := range r.Shards[first:] {
		for part := (shard.Page{Next: after}); !part.Done; visits++ {
			if m.Where != nil && visits >= mostVisits && reached != after {
				l.next = reached
				return l, nil
			}
			// One account more than the limit shows whether the list has more.
			had := len(l.items)
			most := limit + 1 - had
			part, err = s.List(m, part.Next, most, v.Tip().Version, deadline, l.items)
			if err != nil {
				return page{}, err
			}
			if part.Next.Known {
				reached = part.Next
			}
			l.items, l.dataUnknown = part.Accounts, l.dataUnknown || part.DataUnknown
			if len(l.items) > limit {
				l.items, l.next = l.items[:limit], ledger.Some(l.items[limit-1].Pubkey)
				return l, nil
			}
			if len(l.items)-had >= turnAfter || m.Where != nil {
				giveway.Turn()
			}
		}
	}
	if len(l.items) == 0 {
		return l, r.knowsOwner(v, m.Group, deadline)
	}
	return l, nil
}

// knowsOwner returns nil if an account at key, or one that key owns as a program or wallet, is held; otherwise a
// *ledger.NotFoundError.
func (r *Reader) knowsOwner(v ledger.View, key ledger.Pubkey, deadline time.Time) error {
	a, found, err := r.ownerOf(&key).Account(key, v.Tip().Version, deadline)
	if err != nil || found && a.Exists() {
		return err
	}
	for _, s := range r.Shards {
		for by := shard.ByProgram; by <= shard.ByWallet; by++ {
			for part := (shard.Page{}); !part.Done; {
				part, err = s.List(shard.Members{Group: key, By: by}, part.Next, 1, v.Tip().Version, deadline, nil)
				if err != nil || len(part.Accounts) > 0 {
					return err
				}
			}
		}
	}
	if !r.coverage.Load().Complete {
		return &ledger.NotFoundError{Absence: ledger.OwnerNotIndexed}
	}
	return &ledger.NotFoundError{Absence: ledger.OwnerNotFound}
}
