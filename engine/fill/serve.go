package fill

import (
	"context"
	"errors"
	"time"

	"ledgerd/engine/ledger"
)

// errIncomplete refuses an answer without all requested accounts.
var errIncomplete = &ledger.UpstreamError{Err: errors.New("its answer does not tell each account that was asked for")}

// serve fetches keys until every key is ended. It retries keys whose answer was too old. The caller has acquired
// f.fetches.
func (f *Filler) serve(ctx context.Context, keys []ledger.Pubkey) {
	bounded, cancel := context.WithTimeout(ctx, GiveUpAfter)
	defer cancel()
	for {
		base, err := f.fetch(ctx, keys)
		f.fetches.Release(1)
		switch {
		case ctx.Err() != nil:
			return // stop ends the keys
		case err != nil:
			f.fail(keys, err)
			return
		}
		f.back()
		a := &Answer{keys: keys, base: base, done: make(chan struct{})}
		if err := f.offer(bounded, a); err != nil {
			f.end(keys, err)
			return
		}
		if keys = a.tooOld; len(keys) == 0 {
			return
		}
		f.stats.stale.Add(uint64(len(keys)))
		select {
		case <-time.After(AgainAfter):
		case <-bounded.Done():
		}
		if f.fetches.Acquire(bounded, 1) != nil {
			f.end(keys, ledger.ErrFetching)
			return
		}
	}
}

// fetch sends one request to the node.
func (f *Filler) fetch(ctx context.Context, keys []ledger.Pubkey) (*ledger.BaseState, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f.stats.fetches.Add(1)
	f.stats.keys.Add(uint64(len(keys)))
	base, err := f.Fetcher.Fetch(ctx, keys, ledger.Finalized)
	if err == nil && !isComplete(base, keys) {
		err = errIncomplete
	}
	return base, err
}

// isComplete reports whether an answer has each requested account once, and no other.
func isComplete(base *ledger.BaseState, keys []ledger.Pubkey) bool {
	if base == nil || len(base.Accounts) != len(keys) {
		return false
	}
	asked := make(map[ledger.Pubkey]bool, len(keys))
	for _, k := range keys {
		asked[k] = true
	}
	for i := range base.Accounts {
		delete(asked, base.Accounts[i].Pubkey)
	}
	return len(asked) == 0
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
			f.negative.add(k, absence{unwanted: true}, time.Now())
		}
		f.endLocked(k, nil)
		f.mu.Unlock()
	}
	return nil
}

// visible waits until wanted is true for a visible head, which has a block. It returns false if ctx ends first.
func (f *Filler) visible(ctx context.Context, wanted func(*ledger.Head) bool) bool {
	for {
		changed := f.NextPublication() // before the head is read, so that none is missed
		if h := f.Head(); h != nil && h.HasBlock && wanted(h) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
