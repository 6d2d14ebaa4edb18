package stream

import (
	"context"
	"slices"
	"sync"

	"ledgerd/engine/ledger"
)

// fakeHistory is a log of publications. It shows no more than a History has to.
type fakeHistory struct {
	mu     sync.Mutex
	all    []*ledger.Publication
	oldest ledger.Seq
	err    error         // of reading, if set
	gate   chan struct{} // a token lets one reading go on; nil: nothing waits
	reads  []ledger.Seq  // after which readings began
	begins func()        // if set, is called as a reading begins
}

func (f *fakeHistory) add(p *ledger.Publication) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, p)
}

func (f *fakeHistory) Oldest() ledger.Seq {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.oldest
}

func (f *fakeHistory) Past(after ledger.Seq) func(context.Context, func(*ledger.Publication) bool) error {
	next := -1 // in all
	return func(ctx context.Context, visit func(*ledger.Publication) bool) error {
		f.mu.Lock()
		all, err := slices.Clone(f.all), f.err
		f.reads = append(f.reads, after)
		f.mu.Unlock()
		if f.begins != nil {
			f.begins()
		}
		if f.gate != nil {
			select {
			case <-f.gate:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err != nil {
			return err
		}
		if next < 0 {
			next = f.first(all, after)
		}
		for next < len(all) {
			next++
			if !visit(all[next-1]) {
				break
			}
		}
		return nil
	}
}

// first returns where reading begins: with what was not final before an update.
func (f *fakeHistory) first(all []*ledger.Publication, after ledger.Seq) int {
	with := slices.IndexFunc(all, func(p *ledger.Publication) bool { return p.Head.Tip(ledger.Processed).Seq >= after })
	if with <= 0 {
		return 0
	}
	final := all[with-1].Head.Tip(ledger.Finalized).Version
	return slices.IndexFunc(all, func(p *ledger.Publication) bool { return p.Head.Tip(ledger.Processed).Version > final })
}
