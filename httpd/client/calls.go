package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Commitment is how sure the network is of what is read.
type Commitment string

const (
	Processed Commitment = "processed" // may be undone
	Confirmed Commitment = "confirmed" // almost never undone
	Finalized Commitment = "finalized" // never undone
)

// Read says which version of the ledger is read. The zero value reads the newest processed one.
type Read struct {
	Commitment Commitment
	MinSlot    uint64        // the version is of this slot or a later one
	Wait       time.Duration // how long the node waits for MinSlot, at most 2 s
	Tokens     bool          // accounts come with what they say as token accounts and mints
	Data       bool          // accounts come with their data
	Slice      *Slice        // of the data; nil: all of it
}

// Slice is a part of an account's data.
type Slice struct{ Offset, Length uint64 }

// DataFilter selects the accounts of programs by their data, which must be known. At most four parts are compared.
type DataFilter struct {
	Size  *uint64    `json:"data_size,omitempty"` // the length of all data; nil: any
	Parts []DataPart `json:"memcmp,omitempty"`    // all must hold
}

// DataPart is that data has some bytes at an offset: 1 to 128 of them.
type DataPart struct {
	Offset uint64 `json:"offset"`
	Bytes  string `json:"bytes"` // in base58
}

func (r Read) query() url.Values {
	var parts []string
	if r.Tokens {
		parts = append(parts, "token")
	}
	if r.Data {
		parts = append(parts, "data")
	}
	q := url.Values{}
	set(q, map[string]string{
		"commitment": string(r.Commitment), "min_slot": positive(r.MinSlot), "wait_ms": positive(r.Wait.Milliseconds()), "include": strings.Join(parts, ","),
	})
	if r.Slice != nil {
		q.Set("data_slice", fmt.Sprintf("%d,%d", r.Slice.Offset, r.Slice.Length))
	}
	return q
}

// Page says which part of a list is read: at most Limit records after a cursor. The zero value reads the first page of the usual length.
type Page struct {
	Cursor string // NextCursor of the page before
	Limit  int
	Where  *DataFilter // of a program's accounts; nil: all
}

func (p Page) in(q url.Values) url.Values {
	set(q, map[string]string{"cursor": p.Cursor, "limit": positive(p.Limit)})
	if p.Where != nil {
		set(q, map[string]string{"data_size": optional(p.Where.Size)})
		for _, part := range p.Where.Parts {
			q.Add("memcmp", fmt.Sprintf("%d:%s", part.Offset, part.Bytes))
		}
	}
	return q
}

// RecentPage says which transactions are read: at most Limit of those before one signature and after another, both exclusive.
type RecentPage struct {
	Before, After string
	Limit         int
}

// HistoryPage says which transactions of an address are read: a RecentPage of those with a status, in some slots.
type HistoryPage struct {
	RecentPage
	Order            string  // newest or oldest first; empty: newest
	Status           string  // success or failed; empty: any
	FromSlot, ToSlot *uint64 // the oldest and the newest slot; nil: open
}

func (p RecentPage) in(q url.Values) url.Values {
	set(q, map[string]string{"before": p.Before, "after": p.After})
	return Page{Limit: p.Limit}.in(q)
}

// set sets what is not empty.
func set(q url.Values, values map[string]string) {
	for name, value := range values {
		if value != "" {
			q.Set(name, value)
		}
	}
}

// positive returns a number that says something; empty: none.
func positive[T int | int64 | uint64](n T) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// optional returns a number; empty: none.
func optional(n *uint64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// Health returns an error, mostly a *StatusError with 503, while the node is not to be asked.
func (c *Client) Health(ctx context.Context) (Answer[Health], error) {
	return get[Health](ctx, c, "/health", nil)
}

// Status returns what the node is, while it recovers too.
func (c *Client) Status(ctx context.Context) (Answer[Status], error) {
	return get[Status](ctx, c, "/status", nil)
}

// LatestBlock returns the newest block.
func (c *Client) LatestBlock(ctx context.Context, r Read) (Answer[Block], error) {
	return get[Block](ctx, c, "/blocks/latest", r.query())
}

// Block returns the block of a slot. include adds signatures or transactions, if it is not empty.
func (c *Client) Block(ctx context.Context, slot uint64, include string, r Read) (Answer[Block], error) {
	q := r.query()
	if q.Del("include"); include != "" {
		q.Set("include", include)
	}
	return get[Block](ctx, c, "/blocks/"+strconv.FormatUint(slot, 10), q)
}

// Transaction returns a transaction by its first signature.
func (c *Client) Transaction(ctx context.Context, signature string, r Read) (Answer[Transaction], error) {
	return get[Transaction](ctx, c, "/transaction/"+url.PathEscape(signature), r.query())
}

// Recent returns a page of the newest transactions.
func (c *Client) Recent(ctx context.Context, p RecentPage, r Read) (Answer[RecentTransactions], error) {
	return get[RecentTransactions](ctx, c, "/transactions/recent", p.in(r.query()))
}

// Transactions returns a page of the transactions that name an address, an account's key or a program's. A page may be
// empty though the list goes on: the list ends where NextBefore, or NextAfter with
// the oldest first, is nil.
func (c *Client) Transactions(ctx context.Context, pubkey string, p HistoryPage, r Read) (Answer[AccountTransactions], error) {
	q := p.in(r.query())
	set(q, map[string]string{"order": p.Order, "status": p.Status, "from_slot": optional(p.FromSlot), "to_slot": optional(p.ToSlot)})
	return get[AccountTransactions](ctx, c, "/account/"+url.PathEscape(pubkey)+"/transactions", q)
}

// Account returns an account.
func (c *Client) Account(ctx context.Context, pubkey string, r Read) (Answer[Account], error) {
	return get[Account](ctx, c, "/account/"+url.PathEscape(pubkey), r.query())
}

// Balance returns what an account holds.
func (c *Client) Balance(ctx context.Context, pubkey string, r Read) (Answer[Balance], error) {
	return get[Balance](ctx, c, "/account/"+url.PathEscape(pubkey)+"/balance", r.query())
}

// Tokens returns a page of the token accounts of a wallet.
func (c *Client) Tokens(ctx context.Context, wallet string, p Page, r Read) (Answer[Tokens], error) {
	return get[Tokens](ctx, c, "/account/"+url.PathEscape(wallet)+"/tokens", p.in(r.query()))
}

// Holders returns the token accounts that hold the most of a mint, the largest first, with what they hold: at most 100. A node
// answers that with --index-mints.
func (c *Client) Holders(ctx context.Context, mint string, limit int, r Read) (Answer[Holders], error) {
	return get[Holders](ctx, c, "/account/"+url.PathEscape(mint)+"/holders", Page{Limit: limit}.in(r.query()))
}

// Program returns a page of the accounts that a program owns. With a filter a page may be shorter than its limit, and empty, though the list goes on:
// it ends where NextCursor is nil.
func (c *Client) Program(ctx context.Context, program string, p Page, r Read) (Answer[ProgramAccounts], error) {
	return get[ProgramAccounts](ctx, c, "/accounts/program/"+url.PathEscape(program), p.in(r.query()))
}

// Accounts returns up to 100 accounts, all at one slot.
func (c *Client) Accounts(ctx context.Context, pubkeys []string, r Read) (Answer[Accounts], error) {
	q := r.query()
	q.Set("keys", strings.Join(pubkeys, ","))
	return get[Accounts](ctx, c, "/accounts", q)
}
