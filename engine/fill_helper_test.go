package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
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

// questions returns how often the node was asked.
func (u *fakeNode) questions() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.asked)
}

func (u *fakeNode) Fetch(ctx context.Context, keys []ledger.Pubkey, _ ledger.Commitment) (*ledger.BaseState, error) {
	u.mu.Lock()
	u.asked = append(u.asked, keys)
	u.busy++
	u.most = max(u.most, u.busy)
	gate := u.gate
	u.mu.Unlock()
	var ended error
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			ended = ctx.Err()
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy--
	switch {
	case ended != nil:
		return nil, &ledger.UpstreamError{Err: ended}
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

// filling runs a node that fetches from u, on a root block at slot 100.
func filling(t *testing.T, u *fakeNode, c Config) *subject {
	t.Helper()
	c.Fetcher = u
	if c.Shards == 0 {
		c.Shards = 2
	}
	n := startNode(t, partial(), c)
	n.send(rootBlock(100))
	return n
}

// reply is what a question about an account was answered with.
type reply struct {
	account ledger.Account
	view    ledger.View
	err     error
}

// ask asks for an account at a level, on a goroutine of its own.
func (n *subject) ask(q ledger.Query, k ledger.Pubkey) <-chan reply {
	c := make(chan reply, 1)
	go func() {
		a, v, err := n.Account(q, k)
		c <- reply{a, v, err}
	}()
	return c
}

// mustAnswer fails the test unless an account is answered with these lamports, 0 for "not found".
func (n *subject) mustAnswer(q ledger.Query, k ledger.Pubkey, want ledger.Lamports) reply {
	n.t.Helper()
	r := <-n.ask(q, k)
	why, missing := absence(r.err)
	switch {
	case want == 0 && (!missing || why.Absence != ledger.AccountNotFound):
		n.t.Fatalf("answered %d lamports, err %v, want account not found", r.account.Lamports, r.err)
	case want != 0 && (r.err != nil || r.account.Lamports != want || r.account.Pubkey != k):
		n.t.Fatalf("answered %d lamports, err %v, want %d", r.account.Lamports, r.err, want)
	}
	return r
}

// pending fails the test if a question was answered already.
func pending(t *testing.T, c <-chan reply) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		t.Fatalf("answered too early: %d lamports at slot %d, err %v", r.account.Lamports, r.view.Tip().Slot, r.err)
	default:
	}
}
