package client

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"ledgerd/engine/ledger/wait"
)

// longestWait is how long a node lets a question wait.
const longestWait = 2 * time.Second

// WaitFor returns a transaction once it has reached a level. It asks until ctx ends, whose error it then returns; any refusal but that the
// transaction is not there is returned at once.
func (c *Client) WaitFor(ctx context.Context, signature string, level Commitment) (Answer[Transaction], error) {
	for {
		asked := time.Now()
		a, err := c.Transaction(ctx, signature, Read{Commitment: level, Wait: longestWait})
		var refused *StatusError
		if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
			return a, err
		}
		if err := wait.Sleep(ctx, leastPause-time.Since(asked)); err != nil { // where something answers that does not wait
			return a, err
		}
	}
}

// AllTokens yields the token accounts of a wallet, page by page, and ends with the first error.
func (c *Client) AllTokens(ctx context.Context, wallet string, p Page, r Read) iter.Seq2[Token, error] {
	return all(func(cursor string) ([]Token, *string, error) {
		p.Cursor = cursor
		a, err := c.Tokens(ctx, wallet, p, r)
		return a.Value.Tokens, a.Value.NextCursor, err
	}, p.Cursor)
}

// AllProgramAccounts yields the accounts that a program owns, as AllTokens does.
func (c *Client) AllProgramAccounts(ctx context.Context, program string, p Page, r Read) iter.Seq2[Account, error] {
	return all(func(cursor string) ([]Account, *string, error) {
		p.Cursor = cursor
		a, err := c.Program(ctx, program, p, r)
		return a.Value.Accounts, a.Value.NextCursor, err
	}, p.Cursor)
}

// AllTransactions yields the transactions that name an address, as AllTokens does. With a level at which blocks are undone, the list may end
// in an error: the transaction that a page began behind is gone.
func (c *Client) AllTransactions(ctx context.Context, pubkey string, p HistoryPage, r Read) iter.Seq2[Transaction, error] {
	behind := &p.Before
	if p.Order == "oldest" {
		behind = &p.After
	}
	return all(func(cursor string) ([]Transaction, *string, error) {
		*behind = cursor
		a, err := c.Transactions(ctx, pubkey, p, r)
		return a.Value.Transactions, cmp.Or(a.Value.NextBefore, a.Value.NextAfter), err
	}, *behind)
}

// all yields what ask returns for a cursor and for each that it says is next.
func all[T any](ask func(cursor string) (records []T, next *string, err error), cursor string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for next := &cursor; next != nil; {
			var records []T
			var err error
			records, next, err = ask(*next)
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}
