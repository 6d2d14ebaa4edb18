package fill

import (
	"context"
	"errors"
	"slices"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/published"
)

// errIncomplete refuses an answer without all requested accounts.
var errIncomplete = &ledger.UpstreamError{Err: errors.New("its answer does not tell each account that was asked for")}

// serve fetches keys until every key is ended. It retries keys whose answer was too old. The caller has acquired
// f.fetches.
func (f *Filler) serve(ctx context.Context, keys []ledger.Pubkey) {
	bounded, cancel := context.WithTimeout(ctx, GiveUpAfter)
	defer cancel()
	for again := AgainAfter; ; again *= 2 { // a node that is far behind catches up late
		base, err := f.fetch(ctx, keys)
		f.fetches.Release(1)
		if ctx.Err() != nil {
			return // stop ends the keys
		}
		if f.record(keys, err); err != nil {
			return
		}
		a := &Answer{base: base, left: keys, done: make(chan struct{})}
		if err := f.offer(bounded, a); err != nil {
			f.update(func() { f.endLocked(err, a.left...) })
			return
		}
		if keys = a.tooOld; len(keys) == 0 {
			return
		}
		select {
		case <-time.After(again):
		case <-bounded.Done():
		}
		if f.fetches.Acquire(bounded, 1) != nil {
			f.update(func() { f.endLocked(ledger.ErrFetching, keys...) })
			return
		}
	}
}

// fetch sends one request to the node. The answer has each key once, and no other.
func (f *Filler) fetch(ctx context.Context, keys []ledger.Pubkey) (*ledger.BaseState, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	base, err := f.Fetcher.Fetch(ctx, keys, ledger.Finalized)
	if err != nil {
		return nil, err
	}
	isMissing := func(k ledger.Pubkey) bool {
		return !slices.ContainsFunc(base.Accounts, func(w ledger.AccountWrite) bool { return w.Pubkey == k })
	}
	if base == nil || len(base.Accounts) != len(keys) || slices.ContainsFunc(keys, isMissing) {
		return nil, errIncomplete
	}
	return base, nil
}

// offer waits until the chain here is final up to the slot of an answer, passes it to the sequencer, waits until the result
// is visible, and ends the keys for which the state has the result.
func (f *Filler) offer(ctx context.Context, a *Answer) error {
	if !f.visible(ctx, func(h *ledger.Head) bool { return h.Tip(ledger.Finalized).Slot >= a.base.Slot }) {
		return ledger.ErrFetching
	}
	select {
	case f.answers <- a:
		<-a.done
	case <-ctx.Done():
		return ledger.ErrFetching
	}
	if a.err != nil {
		return a.err
	}
	if !f.visible(ctx, func(h *ledger.Head) bool { return h.Tip(ledger.Processed).Version >= a.version }) {
		return ledger.ErrFetching
	}
	for _, k := range a.inState {
		_, _, err := f.Held(ledger.Query{}, k)
		f.mu.Lock()
		if notIndexed(err) && a.rollbacks == f.rollbacks {
			f.addNegativeLocked(k, absence{unwanted: true})
		}
		f.endLocked(nil, k)
		f.mu.Unlock()
	}
	return nil
}

// visible waits until wanted is true for a visible head, which has a block. It returns false if ctx ends first.
func (f *Filler) visible(ctx context.Context, wanted func(*ledger.Head) bool) bool {
	return published.Await(f.Board, ctx.Done(), func() bool {
		h := f.Board.Head()
		return h != nil && h.HasBlock && wanted(h)
	})
}
