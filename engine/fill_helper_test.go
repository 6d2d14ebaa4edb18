package engine

import (
	"context"
	"sync"
	"time"

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
	takes    time.Duration // how long an answer takes
	spoil    func(*ledger.BaseState) *ledger.BaseState

	asked [][]ledger.Pubkey
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

// hold has answers take their time, or wait until the gate is closed, as the one before is now.
func (u *fakeNode) hold(takes time.Duration, gate chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gate != nil {
		close(u.gate)
	}
	u.takes, u.gate = takes, gate
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
