package stream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
)

// fakeHistory is a log of publications. It shows no more than a History has to.
type fakeHistory struct {
	mu     sync.Mutex
	all    []*ledger.Publication
	oldest ledger.Seq
	err    error // of Publications, if set
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

func (f *fakeHistory) Publications(_ context.Context, after ledger.Seq, visit func(*ledger.Publication) error) error {
	f.mu.Lock()
	all, err := slices.Clone(f.all), f.err
	f.mu.Unlock()
	if err != nil {
		return err
	}
	with := slices.IndexFunc(all, func(p *ledger.Publication) bool { return p.Head.Tip(ledger.Processed).Seq >= after })
	from := 0
	if with > 0 { // what was not final before it
		final := all[with-1].Head.Tip(ledger.Finalized).Version
		from = slices.IndexFunc(all, func(p *ledger.Publication) bool { return p.Head.Tip(ledger.Processed).Version > final })
	}
	for _, p := range all[from:] {
		if err := visit(p); err != nil {
			return err
		}
	}
	return nil
}

func TestTheLogEndsWhereItWasPruned(t *testing.T) {
	log := &fakeHistory{oldest: 2}
	n := serve(t, func(c *Config) { c.History, c.RecentBytes = log, 1 })
	n.script.history = log
	for slot := range ledger.Slot(5) {
		n.script.block(slot+1, account(1, ledger.Lamports(slot+1), programA))
	}
	for id, c := range n.resumes("?mode=none", 1) {
		c.expect(resync(id, 2, 5))
	}
	for id, c := range n.resumes("?extended=true", 2) {
		c.expect(resumed(id, 2), slotEnd(2, 2))
		for slot := ledger.Slot(3); slot <= 5; slot++ {
			c.expect(extendedFrame(account(1, ledger.Lamports(slot), programA), slot, ledger.Seq(slot), "processed"), slotEnd(slot, ledger.Seq(slot)))
		}
		c.quiet()
	}
}

// Who was promised what the log then does not give is not left with a hole.
func TestALogThatFailsEndsTheConnection(t *testing.T) {
	for name, spoil := range map[string]func(*fakeHistory){
		"it cannot be read":           func(f *fakeHistory) { f.err = errors.New("a fault") },
		"it ends before what is kept": func(f *fakeHistory) { f.all = f.all[:2] },
	} {
		log := &fakeHistory{}
		logger, text := newLog()
		n := serve(t, func(c *Config) { c.History, c.RecentBytes, c.Logger = log, 1, logger })
		n.script.history = log
		for slot := range ledger.Slot(5) {
			n.script.block(slot+1, account(1, ledger.Lamports(slot+1), programA))
		}
		spoil(log)
		c := n.dial("?resume_from=1")
		c.expect(resumed("null", 1))
		c.endsWith(closeInternal, endInternal.text)
		if text.Len() == 0 {
			t.Errorf("%s: nothing was logged", name)
		}
	}
}
