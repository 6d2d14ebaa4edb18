package engine

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
)

// gateLog commits nothing until it is opened, and counts.
type gateLog struct {
	NullLog
	gate    chan struct{}
	commits int
	closed  bool
}

func newGateLog() *gateLog { return &gateLog{gate: make(chan struct{})} }

// open lets every commit through from now on, and waits until nothing moves.
func (l *gateLog) open() {
	close(l.gate)
	synctest.Wait()
}

func (l *gateLog) Commit([]*ledger.Record) error {
	l.commits++
	<-l.gate
	return nil
}

func (l *gateLog) Close() error {
	l.closed = true
	return nil
}

// failingLog fails at one call and remembers what was durable before.
type failingLog struct {
	NullLog
	failAt       int // the n-th commit
	calls        int
	failed       bool
	durable      ledger.Version
	afterFailure int
}

var errDisk = errors.New("/secret/path: input/output error")

func (l *failingLog) Commit(records []*ledger.Record) error {
	if l.failed {
		l.afterFailure++
	}
	if l.calls++; l.calls == l.failAt {
		l.failed = true
		return errDisk
	}
	for _, r := range records {
		if r.Version != l.durable+1 {
			panic("a record is out of its place")
		}
		l.durable = r.Version
	}
	return nil
}

// TestNothingIsSeenBeforeItIsDurable holds a commit back: no query, health check or publication
// sees what it holds.
func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		gate := newGateLog()
		n := startNode(t, live(), Config{Shards: 3, Log: gate})
		n.send(rootBlock(100, lamports(key(1), 5)))
		if n.Head() != nil || len(n.published) != 0 || n.Status().Unhealthy == "" {
			t.Errorf("head %v, %d publications, health %q before the commit returned", n.Head(), len(n.published), n.Status().Unhealthy)
		}
		if _, v, err := n.Account(ledger.Query{}, key(1)); !errors.Is(err, ledger.ErrUnavailable) || v.Head != nil {
			t.Errorf("an account before the commit returned: %v, want unavailable", err)
		}
		gate.open()
		if a, _, err := n.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 5 {
			t.Errorf("after the commit: %d lamports, %v, want 5", a.Lamports, err)
		}
		n.mustStop()
		if !gate.closed {
			t.Error("the log is not closed")
		}
	})
}

// TestWaitingEventsShareOneCommit lets events wait behind a slow commit: they become durable
// and visible together.
func TestWaitingEventsShareOneCommit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		gate := newGateLog()
		n := startNode(t, live(), Config{Shards: 2, Log: gate})
		root := rootBlock(100)
		n.send(root)
		n.send(events(chainOf(root, 20)...)...)
		gate.open()
		if gate.commits != 2 || len(n.published) != 2 || len(n.published[1].Records) != 20 {
			t.Errorf("%d commits, %d publications, want 2 of each, the second of 20 blocks", gate.commits, len(n.published))
		}
		if tip := n.Head().Tip(ledger.Processed).Slot; tip != 120 {
			t.Errorf("stands at slot %d, want 120", tip)
		}
		n.mustStop()
	})
}

// TestLogFailureFreezesWhatIsSeen fails every call of the log in turn: what was durable before
// stays visible and is answered, nothing else ever is, and the log is left alone.
func TestLogFailureFreezesWhatIsSeen(t *testing.T) {
	for _, info := range []ledger.SourceInfo{live(), finite()} {
		for failAt, done := 1, false; !done; failAt++ {
			bubble.Test(t, func(t *testing.T) { done = followFailingLog(t, info, failAt) })
			if t.Failed() {
				return
			}
		}
	}
}

// followFailingLog reports whether the log never came to fail.
func followFailingLog(t *testing.T, info ledger.SourceInfo, failAt int) (done bool) {
	f := newForkAccounts()
	root := f.root()
	branch := f.branch(root, 101, 3)
	stream := append([]ledger.Event{&ledger.BaseState{Slot: 9, Accounts: []ledger.AccountWrite{lamports(f.untouched, 3)}}, root}, events(branch...)...)
	stream = append(stream, child(root, 110, 2, lamports(f.changed, 9)), status(branch[1], ledger.StatusConfirmed))

	log := &failingLog{failAt: failAt}
	n := startNode(t, info, Config{Shards: 2, Log: log})
	defer n.mustStop()
	all := sequencer.Retention{Slots: 9000, Bytes: math.MaxInt}
	m := newModel(info)
	c := newComparer(t, seeded(t, uint64(failAt)), m, all)
	for i := range 14 {
		c.keys, c.programs, c.wallets = append(c.keys, key(i)), []ledger.Pubkey{f.program}, []ledger.Pubkey{f.wallet, f.otherWallet}
		c.signatures = append(c.signatures, signature(i))
	}
	for _, e := range stream {
		m.event(e)
		n.send(e)
	}
	if !log.failed {
		return true
	}
	last := ledger.Version(0)
	for _, r := range n.records() {
		last = r.Version
	}
	if last != log.durable || log.afterFailure != 0 {
		t.Fatalf("call %d failed: seen up to record %d, durable up to %d, %d calls after the failure", failAt, last, log.durable, log.afterFailure)
	}
	if why := n.Status().Unhealthy; !strings.Contains(why, "the disk failed") || strings.Contains(why, "secret") {
		t.Fatalf("call %d failed: health says %q", failAt, why)
	}
	if h := n.Head(); h != nil && h.HasBlock {
		if h.Tip(ledger.Processed).Version != last {
			t.Fatalf("call %d failed: the head is at version %d, want %d", failAt, h.Tip(ledger.Processed).Version, last)
		}
		c.held[h] = m.points[last]
		c.answers(n.Engine, nil)
	}
	return false
}
