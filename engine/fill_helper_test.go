package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// partial is a live source that shows only what changes.
func partial() ledger.SourceInfo {
	return ledger.SourceInfo{Name: "test", Identity: "test", Live: true}
}

// fakeNode is a node that a test scripts: what it holds, as of which slot, and what goes wrong.
type fakeNode struct {
	mu       sync.Mutex
	slot     ledger.Slot
	accounts map[ledger.Pubkey]ledger.AccountWrite
	err      error
	gate     chan struct{} // not nil: no question is answered before it is closed
	takes    time.Duration // how long an answer takes
	spoil    func(*ledger.BaseState) *ledger.BaseState

	asked      [][]ledger.Pubkey
	busy, most int // questions being answered
}

func newFakeNode(slot ledger.Slot, writes ...ledger.AccountWrite) *fakeNode {
	u := &fakeNode{accounts: make(map[ledger.Pubkey]ledger.AccountWrite)}
	u.at(slot, writes...)
	return u
}

// at has the node's ledger be final up to a slot, with these accounts changed.
func (u *fakeNode) at(slot ledger.Slot, writes ...ledger.AccountWrite) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.slot = slot
	for _, w := range writes {
		u.accounts[w.Pubkey] = w
	}
}

func (u *fakeNode) fails(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
}

func (u *fakeNode) Fetch(ctx context.Context, keys []ledger.Pubkey, _ ledger.Commitment) (*ledger.BaseState, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, keys)
	u.busy++
	u.most = max(u.most, u.busy)
	defer func() { u.busy-- }()
	if gate := u.gate; gate != nil || u.takes > 0 {
		u.mu.Unlock()
		time.Sleep(u.takes)
		for gate != nil && ctx.Err() == nil {
			select {
			case <-gate:
				gate = nil
			case <-ctx.Done():
			}
		}
		u.mu.Lock()
	}
	switch {
	case ctx.Err() != nil:
		return nil, &ledger.UpstreamError{Err: ctx.Err()}
	case u.err != nil:
		return nil, u.err
	}
	b := &ledger.BaseState{Slot: u.slot}
	for _, k := range keys {
		w := u.accounts[k]
		w.Pubkey = k
		b.Accounts = append(b.Accounts, w)
	}
	if u.spoil != nil {
		b = u.spoil(b)
	}
	return b, nil
}

// reply is what a question about an account was answered with.
type reply struct {
	account ledger.Account
	view    ledger.View
	err     error
	took    time.Duration
}

// ask asks for an account at a level, on a goroutine of its own.
func (n *subject) ask(q ledger.Query, k ledger.Pubkey) <-chan reply {
	c, begun := make(chan reply, 1), time.Now()
	go func() {
		a, v, err := n.Account(q, k)
		c <- reply{a, v, err, time.Since(begun)}
	}()
	return c
}

// fillTest runs a test of a node on a root at slot 100 that fetches from another, where key(1) has 5 lamports at slot 100.
func fillTest(t *testing.T, f func(t *testing.T, u *fakeNode, n *subject)) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		u := newFakeNode(100, lamports(key(1), 5))
		n := startNode(t, partial(), Config{Shards: 2, Fetcher: u})
		n.send(rootBlock(100))
		f(t, u, n)
	})
}

// mustAnswer fails the test unless an account is answered with these lamports, 0 for "not found".
func (n *subject) mustAnswer(q ledger.Query, k ledger.Pubkey, want ledger.Lamports) reply {
	n.t.Helper()
	return n.mustGet(n.ask(q, k), want)
}

// mustGet fails the test unless a question is answered with these lamports, 0 for "not found".
func (n *subject) mustGet(c <-chan reply, want ledger.Lamports) reply {
	n.t.Helper()
	r := <-c
	why, missing := absence(r.err)
	switch {
	case want == 0 && (!missing || why.Absence != ledger.AccountNotFound):
		n.t.Fatalf("answered %d lamports, err %v, want account not found", r.account.Lamports, r.err)
	case want != 0 && (r.err != nil || r.account.Lamports != want):
		n.t.Fatalf("answered %d lamports, err %v, want %d", r.account.Lamports, r.err, want)
	}
	return r
}

// mustRefuse fails the test unless a question is answered with an error.
func (n *subject) mustRefuse(q ledger.Query, k ledger.Pubkey, want error) reply {
	n.t.Helper()
	r := <-n.ask(q, k)
	ledgertest.ErrorIs(n.t, r.err, want, "answered %d lamports", r.account.Lamports)
	return r
}

// pending waits until nothing moves, and fails the test if a question was answered already.
func pending(t *testing.T, c <-chan reply) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		t.Fatalf("answered too early: %d lamports at slot %d, err %v", r.account.Lamports, r.view.Tip().Slot, r.err)
	default:
	}
}
