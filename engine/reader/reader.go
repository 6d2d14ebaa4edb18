package reader

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/published"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// Config is what a reader needs.
type Config struct {
	Board    *published.Board
	Shards   []*shard.Shard
	Stored   *txstore.Store // the transactions of blocks
	Deadline time.Duration  // how long a query may take after its version is fixed
}

// Coverage is the part of the ledger that a node holds. A Coverage never changes.
type Coverage struct {
	Complete  bool           // every account of the ledger is held
	ShowsAll  bool           // the source, or what was imported, shows every account of the ledger
	Filter    *ledger.Filter // which accounts are held; nil: all
	SkipVotes bool           // vote transactions are not held
}

// Reader answers queries. Its methods may be called from any goroutine.
type Reader struct {
	Config
	coverage atomic.Pointer[Coverage]
	archive  atomic.Pointer[snapshot.Archive] // nil: there is none
}

// New returns a reader for a node that covers nothing until Cover says more.
func New(c Config) *Reader {
	r := &Reader{Config: c}
	r.Cover(Coverage{})
	return r
}

// Cover says what the node holds. Queries that run go on with what was said before.
func (r *Reader) Cover(c Coverage) { r.coverage.Store(&c) }

// ReadArchive has blocks that memory does not hold read from an archive.
func (r *Reader) ReadArchive(a *snapshot.Archive) { r.archive.Store(a) }

// Archive returns the archive that ReadArchive set, nil before.
func (r *Reader) Archive() *snapshot.Archive { return r.archive.Load() }

// view returns the view that a query is answered from. It waits for the query's MinSlot for at most its Wait.
func (r *Reader) view(q ledger.Query) (ledger.View, error) {
	v := ledger.View{Head: q.Head, Commitment: q.Commitment}
	if v.Head != nil {
		return v, r.Board.FenceError()
	}
	var err error
	if v.Head, err = r.Board.Answerable(); err != nil || v.Tip().Slot >= q.MinSlot {
		return v, err
	}
	reached := q.Wait > 0 && published.Await(r.Board, time.After(q.Wait), func() bool {
		v.Head, err = r.Board.Answerable()
		return err != nil || v.Tip().Slot >= q.MinSlot
	})
	if !reached {
		return v, ledger.ErrMinSlot
	}
	return v, err
}

// Await waits for the MinSlot of a query, for at most its Wait.
func (r *Reader) Await(q ledger.Query) error {
	_, err := r.view(q)
	return err
}

// answer calls ask with the view of a query. If the view's version is folded meanwhile, which happens
// only when memory is short, it retries with a newer view. All attempts share one deadline.
func answer[A any](r *Reader, q ledger.Query, ask func(ledger.View, time.Time) (A, error)) (a A, v ledger.View, err error) {
	if v, err = r.view(q); err != nil {
		return a, v, err
	}
	deadline := q.Deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(r.Deadline)
	}
	for {
		v.Deadline = deadline
		a, err = ask(v, deadline)
		if !errors.Is(err, shard.ErrFolded) || q.Head != nil || r.Board.Head() == v.Head {
			return a, v, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return a, v, err
		}
		q.Wait = min(q.Wait, left)
		if v, err = r.view(q); err != nil {
			return a, v, err
		}
	}
}

// ownerOf returns the shard that owns a key.
func (r *Reader) ownerOf(key *ledger.Pubkey) *shard.Shard {
	return r.Shards[shard.Of(key.Prefix(), len(r.Shards))]
}

// Account returns a live account without its token facts, which Accounts and Tokens return. For a
// missing one it returns a *ledger.NotFoundError.
func (r *Reader) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	// TryAccount needs no deadline, so no clock is read.
	if v, err := r.view(q); err != nil {
		return ledger.Account{}, v, err
	} else if a, found, answered := r.ownerOf(&key).TryAccount(key, v.Tip().Version); answered {
		return a, v, r.absence(v, &a, found)
	}
	return answer(r, q, func(v ledger.View, deadline time.Time) (ledger.Account, error) {
		a, found, err := r.ownerOf(&key).Account(key, v.Tip().Version, deadline)
		if err == nil {
			err = r.absence(v, &a, found)
		}
		return a, err
	})
}

// absence returns nil for a live account, else an error that says why there is none.
func (r *Reader) absence(v ledger.View, a *ledger.Account, found bool) error {
	switch {
	case found && a.Exists():
		return nil
	case found && !a.ForgottenBelow(v.Head.Horizon):
		return &ledger.NotFoundError{Absence: ledger.AccountClosed, Slot: a.Since.Slot()}
	case r.coverage.Load().Complete:
		return &ledger.NotFoundError{Absence: ledger.AccountNotFound}
	}
	return &ledger.NotFoundError{Absence: ledger.AccountNotIndexed}
}

// Accounts returns accounts in the order of keys, all at one version. One that does not
// exist or is not held has 0 lamports; View.Lacks says whether some may be missing because they are not held.
func (r *Reader) Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error) {
	all, v, err := answer(r, q, func(v ledger.View, deadline time.Time) ([]ledger.Account, error) {
		return Scatter(r.Shards, keys, v.Tip().Version, deadline, (*shard.Shard).Accounts)
	})
	v.Lacks = !r.coverage.Load().Complete && slices.ContainsFunc(all, func(a ledger.Account) bool { return v.Misses(&a) })
	return all, v, err
}

// Mints returns the facts of mints in the order of keys, nil for unknown ones, all at one version. The facts are
// shared and must not be changed.
func (r *Reader) Mints(q ledger.Query, keys []ledger.Pubkey) ([]*ledger.Mint, ledger.View, error) {
	return answer(r, q, func(v ledger.View, deadline time.Time) ([]*ledger.Mint, error) {
		return Scatter(r.Shards, keys, v.Tip().Version, deadline, (*shard.Shard).Mints)
	})
}

// scatterKeys bounds the keys that one query to a shard reads.
const scatterKeys = 256

// Scatter queries each shard for the keys that it owns, and returns the answers in the order of keys, all at one version.
func Scatter[R any](shards []*shard.Shard, keys []ledger.Pubkey, v ledger.Version, deadline time.Time,
	ask func(s *shard.Shard, keys []ledger.Pubkey, v ledger.Version, deadline time.Time, out []R) error) ([]R, error) {
	out := make([]R, len(keys)) // of this call alone: after an error a shard may still write there
	rest := out
	for some := range slices.Chunk(keys, scatterKeys) {
		for i, s := range shards {
			owns := func(k ledger.Pubkey) bool { return shard.Of(k.Prefix(), len(shards)) == i }
			if !slices.ContainsFunc(some, owns) {
				continue
			}
			if err := ask(s, some, v, deadline, rest[:len(some)]); err != nil {
				return nil, err
			}
		}
		rest = rest[len(some):]
	}
	return out, nil
}
