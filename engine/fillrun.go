package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"ledgerd/engine/ledger"
)

// fetched is what the node answered to one question.
type fetched struct {
	keys   []ledger.Pubkey
	base   *ledger.BaseState
	err    error
	at     time.Time
	due    time.Time // not to be offered before: the sequencer gave it back
	undone uint64    // how often the chain was undone before the node was asked
}

// run fetches what is wanted, and offers it to the sequencer when its time has come, until ctx
// ends. It returns when everything it started did.
func (f *filler) run(ctx context.Context, e *Engine) {
	var fetches sync.WaitGroup
	defer fetches.Wait()
	defer f.stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var held []*fetched // to be offered
	for free := maxFetches; ; {
		now := time.Now()
		for ; free > 0; free-- {
			keys := f.take(now)
			if len(keys) == 0 {
				break
			}
			fetches.Go(func() { f.results <- f.fetch(ctx, keys) })
		}
		changed := e.nextPublication() // before the head is read, so that none is missed
		held = append(f.unexpired(held, now), f.takeReturned()...)
		next := ripe(held, e.head.Load(), now)
		var offers chan<- *fetched
		var offer *fetched
		if next >= 0 {
			offers, offer = f.offers, held[next]
		}
		wait := f.nextWork(now)
		if free == 0 {
			wait = time.Hour // an answer wakes us
		}
		if len(held) > 0 {
			wait = min(wait, nextHeld(held, now))
		} else {
			changed = nil
		}
		timer.Reset(max(wait, 0))
		select {
		case offers <- offer:
			held = append(held[:next], held[next+1:]...)
		case r := <-f.results:
			free++
			if f.usable(ctx, r) {
				held = append(held, r)
			}
		case <-f.wake:
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// fetch asks the node.
func (f *filler) fetch(ctx context.Context, keys []ledger.Pubkey) *fetched {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f.stats.fetches.Add(1)
	f.stats.keys.Add(uint64(len(keys)))
	undone := f.undone.Load()
	base, err := f.fetcher.Fetch(ctx, keys)
	if err == nil && base == nil {
		err = errIncomplete
	}
	return &fetched{keys: keys, base: base, err: err, at: time.Now(), undone: undone}
}

// errIncomplete is an answer that is none.
var errIncomplete = &ledger.UpstreamError{Err: errors.New("its answer does not tell each account that was asked for")}

// usable reports whether an answer is one. Else its wants have ended.
func (f *filler) usable(ctx context.Context, r *fetched) bool {
	if r.err == nil {
		r.err = r.check()
	}
	switch {
	case r.err == nil:
		f.back()
	case ctx.Err() == nil: // else nobody is told: everything ends
		f.fail(r.keys, r.err)
	}
	return r.err == nil
}

// check returns an error unless the answer tells each account that was asked for, once.
func (r *fetched) check() error {
	asked := make(map[ledger.Pubkey]bool, len(r.keys))
	for _, k := range r.keys {
		asked[k] = true
	}
	for i := range r.base.Accounts {
		k := r.base.Accounts[i].Pubkey
		if !asked[k] {
			return errIncomplete
		}
		delete(asked, k)
	}
	if len(asked) > 0 {
		return errIncomplete
	}
	return nil
}

// ripe returns the place of an answer whose slot is known confirmed here, -1 if there is none.
func ripe(held []*fetched, h *ledger.Head, now time.Time) int {
	if h == nil || !h.HasBlock {
		return -1
	}
	for i, r := range held {
		if r.base.Slot <= h.Tip(ledger.Confirmed).Slot && !now.Before(r.due) {
			return i
		}
	}
	return -1
}

// nextHeld returns how long there is nothing to do with the answers that are held, unless the
// chain gets on.
func nextHeld(held []*fetched, now time.Time) time.Duration {
	wait := holdFor
	for _, r := range held {
		wait = min(wait, r.at.Add(holdFor).Sub(now))
		if now.Before(r.due) {
			wait = min(wait, r.due.Sub(now))
		}
	}
	return max(wait, 0)
}

// unexpired returns the answers that may wait on. Those of the others are asked for again by
// whoever still wants them.
func (f *filler) unexpired(held []*fetched, now time.Time) []*fetched {
	kept := held[:0]
	for _, r := range held {
		if now.Sub(r.at) < holdFor {
			kept = append(kept, r)
			continue
		}
		f.end(r.keys, ledger.ErrFetching)
	}
	clear(held[len(kept):])
	return kept
}

func (f *filler) takeReturned() []*fetched {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.returned
	f.returned = nil
	return r
}
