package engine

import (
	"errors"
	"slices"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
)

const (
	// queryDeadline is how long a query may take after its version is fixed.
	queryDeadline = 2 * time.Second
	// foldAfter is how long a version stays readable after it stopped being the newest
	// finalized one: longer than any query that started before.
	foldAfter = queryDeadline + 250*time.Millisecond
)

// Head returns the newest published head, nil before the first and after the node fenced itself off.
func (e *Engine) Head() *ledger.Head {
	if e.shared.fenced.Load() != nil {
		return nil
	}
	return e.head.Load()
}

// answerable returns the newest head, with an error while no query can be answered from it.
func (e *Engine) answerable() (*ledger.Head, error) {
	if err := e.errFenced(); err != nil {
		return nil, err
	}
	ready, recovered := e.ready.Load(), e.recoveryOver.Load() // loaded before head, so the head that they announce is visible
	h := e.head.Load()
	switch {
	case ready || h != nil && h.HasSlot():
		return h, nil
	case recovered && h == nil:
		return nil, ledger.ErrNoBlock
	}
	return h, ledger.ErrRecovering // the state may have only a part of the base state
}

// view returns the view that a query is answered from. It waits for the query's MinSlot for at most its Wait.
func (e *Engine) view(q ledger.Query) (ledger.View, error) {
	v := ledger.View{Head: q.Head, Commitment: q.Commitment}
	if v.Head != nil {
		return v, e.errFenced()
	}
	var err error
	if v.Head, err = e.answerable(); err != nil {
		return v, err
	}
	if v.Tip().Slot >= q.MinSlot {
		return v, nil
	}
	if q.Wait <= 0 {
		return v, ledger.ErrMinSlot
	}
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	for {
		changed := e.nextPublication() // before the head is read, so that none is missed
		if v.Head = e.head.Load(); v.Tip().Slot >= q.MinSlot {
			return v, nil
		}
		if err := e.errFenced(); err != nil {
			return v, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return v, ledger.ErrMinSlot
		}
	}
}

// nextPublication returns a channel that is closed at the next publication.
func (e *Engine) nextPublication() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// answer calls ask with the view of a query. If the view's version is folded meanwhile, which happens
// only when memory is short, it retries with a newer view. All attempts share one deadline.
func answer[R any](e *Engine, q ledger.Query, ask func(ledger.View, time.Time) (R, error)) (r R, v ledger.View, err error) {
	if v, err = e.view(q); err != nil {
		return r, v, err
	}
	for deadline := time.Now().Add(queryDeadline); ; {
		r, err = ask(v, deadline)
		folded := errors.Is(err, shard.ErrFolded) && q.Head == nil && e.head.Load() != v.Head
		left := time.Until(deadline)
		if !folded || left <= 0 {
			return r, v, err
		}
		q.Wait = min(q.Wait, left)
		if v, err = e.view(q); err != nil {
			return r, v, err
		}
	}
}

// ownerOf returns the shard that owns a key.
func (e *Engine) ownerOf(key *ledger.Pubkey) *shard.Shard {
	return e.shards[shard.Of(key.Prefix(), len(e.shards))]
}

// Account returns a live account without its token facts, which Accounts and Tokens return. For a
// missing one it returns a *ledger.NotFoundError. With Config.Fetcher it first fetches an account that is not
// held, within the deadline of the query.
func (e *Engine) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	a, v, err := e.account(q, key)
	if e.fill == nil || q.Head != nil || !e.shared.writes() { // only the writer records fetched accounts
		return a, v, err
	}
	return e.fill.Account(q, key, a, v, err)
}

// account is Account without fetching.
func (e *Engine) account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	return answer(e, q, func(v ledger.View, deadline time.Time) (ledger.Account, error) {
		a, found, err := e.ownerOf(&key).Account(key, v.Tip().Version, deadline)
		switch {
		case err != nil || found && a.Exists():
			return a, err
		case found && !e.config.Retention.Forgets(v.Head, a.Since.Slot()):
			return a, &ledger.NotFoundError{Absence: ledger.AccountClosed, Slot: a.Since.Slot()}
		case e.known.Load().info.Complete:
			return a, &ledger.NotFoundError{Absence: ledger.AccountNotFound}
		}
		return a, &ledger.NotFoundError{Absence: ledger.AccountNotIndexed}
	})
}

// Accounts returns accounts in the order of keys, all at one version. One that does not
// exist or is not held has 0 lamports; View.Lacks says whether some may be missing because they are not held.
func (e *Engine) Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error) {
	all, v, err := answer(e, q, func(v ledger.View, deadline time.Time) ([]ledger.Account, error) {
		return scatter(e, keys, func(s *shard.Shard, keys []ledger.Pubkey) ([]ledger.Account, error) {
			return s.Accounts(keys, v.Tip().Version, deadline)
		})
	})
	v.Lacks = !e.known.Load().info.Complete && slices.ContainsFunc(all, func(a ledger.Account) bool {
		// An account that is known to be closed is not missing.
		return !a.Exists() && (a.Since == 0 || e.config.Retention.Forgets(v.Head, a.Since.Slot()))
	})
	return all, v, err
}

// Mints returns the facts of mints in the order of keys, nil for unknown ones, all at one version. The facts are
// shared and must not be changed.
func (e *Engine) Mints(q ledger.Query, keys []ledger.Pubkey) ([]*ledger.Mint, ledger.View, error) {
	return answer(e, q, func(v ledger.View, deadline time.Time) ([]*ledger.Mint, error) {
		return e.mints(v, keys, deadline)
	})
}

func (e *Engine) mints(v ledger.View, keys []ledger.Pubkey, deadline time.Time) ([]*ledger.Mint, error) {
	return scatter(e, keys, func(s *shard.Shard, keys []ledger.Pubkey) ([]*ledger.Mint, error) {
		return s.Mints(keys, v.Tip().Version, deadline)
	})
}

// scatterKeys bounds the keys of one query to a shard.
const scatterKeys = 256

// scatter calls ask for the keys of each shard and returns the answers in the order of keys.
func scatter[R any](e *Engine, keys []ledger.Pubkey, ask func(*shard.Shard, []ledger.Pubkey) ([]R, error)) ([]R, error) {
	out := make([]R, len(keys))
	indexes := make([][]int, len(e.shards)) // into keys, by shard
	for i := range keys {
		n := shard.Of(keys[i].Prefix(), len(e.shards))
		indexes[n] = append(indexes[n], i)
	}
	for n, all := range indexes {
		for len(all) > 0 {
			some := all[:min(len(all), scatterKeys)]
			all = all[len(some):]
			part := make([]ledger.Pubkey, len(some))
			for i, at := range some {
				part[i] = keys[at]
			}
			answers, err := ask(e.shards[n], part)
			if err != nil {
				return nil, err
			}
			for i, at := range some {
				out[at] = answers[i]
			}
		}
	}
	return out, nil
}

// Transaction returns the transaction with the signature, or a *ledger.NotFoundError.
func (e *Engine) Transaction(q ledger.Query, sig ledger.Signature) (ledger.TransactionAnswer, ledger.View, error) {
	return answer(e, q, func(v ledger.View, _ time.Time) (a ledger.TransactionAnswer, err error) {
		a.Transaction, err = e.transaction(v, sig)
		if err == nil {
			a.Commitment = v.Head.CommitmentOf(a.Transaction.Slot)
		}
		return a, err
	})
}

func (e *Engine) transaction(v ledger.View, sig ledger.Signature) (*ledger.Transaction, error) {
	blocks := blocksOf(v)
	t := e.stored.Transaction(&sig, func(b *txstore.Block) bool {
		i := firstFrom(blocks, b.Block.Slot)
		return i < len(blocks) && blocks[i] == b
	})
	switch {
	case t != nil:
		return t, nil
	case e.known.Load().skipVotes:
		return nil, &ledger.NotFoundError{Absence: ledger.TransactionNotIndexed}
	}
	return nil, &ledger.NotFoundError{Absence: ledger.TransactionNotFound}
}
