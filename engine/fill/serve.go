package fill

import (
	"context"
	"errors"
	"time"

	"ledgerd/engine/ledger"
)

// errIncomplete refuses an answer that is not one.
var errIncomplete = &ledger.UpstreamError{Err: errors.New("its answer does not tell each account that was asked for")}

// serve fetches keys, asking again for those of which the node's answer was too old, and ends the waiting for
// each. It begins with a token of f.fetches.
func (f *Filler) serve(ctx context.Context, keys []ledger.Pubkey) {
	bounded, cancel := context.WithTimeout(ctx, GiveUpAfter)
	defer cancel()
	for {
		base, err := f.fetch(ctx, keys)
		<-f.fetches
		switch {
		case ctx.Err() != nil:
			return // stop ends the waiting
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
		select {
		case f.fetches <- struct{}{}:
		case <-bounded.Done():
		}
		if bounded.Err() != nil {
			f.end(keys, ledger.ErrFetching)
			return
		}
	}
}

// fetch asks the node once.
func (f *Filler) fetch(ctx context.Context, keys []ledger.Pubkey) (*ledger.BaseState, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f.stats.fetches.Add(1)
	f.stats.keys.Add(uint64(len(keys)))
	base, err := f.Fetcher.Fetch(ctx, keys, ledger.Finalized)
	if err == nil && !tells(base, keys) {
		err = errIncomplete
	}
	return base, err
}

// tells reports whether an answer tells each account that was asked for, once, and no other.
func tells(base *ledger.BaseState, keys []ledger.Pubkey) bool {
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

// offer has the sequencer learn an answer when the chain here is final up to its slot, waits until that is visible, and ends the
// waiting for what was learned.
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
	for _, k := range a.stateTells {
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

// visible waits until a visible head is as wanted, or ctx ends.
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
