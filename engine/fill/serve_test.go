package fill

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// staleNode answers after a while, as of a slot, that no account exists.
type staleNode struct{ slot atomic.Uint64 }

func (n *staleNode) Fetch(_ context.Context, keys []ledger.Pubkey, _ ledger.Commitment) (*ledger.BaseState, error) {
	time.Sleep(130 * time.Millisecond) // so that a request is given up while it waits to be repeated
	b := &ledger.BaseState{Slot: ledger.Slot(n.slot.Load())}
	for _, k := range keys {
		b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: k})
	}
	return b, nil
}

// TestRequestsGoOnAfterManyWereGivenUp has a node answer as of a slot that is too old, for more accounts than there
// are requests at once. Then it answers once more so, and is asked again.
func TestRequestsGoOnAfterManyWereGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		head := &ledger.Head{HasBlock: true}
		for level := range head.Tips {
			head.Tips[level].Slot = 100
		}
		node := new(staleNode)
		node.slot.Store(99)
		notHeld := &ledger.NotFoundError{Absence: ledger.AccountNotIndexed}
		f := New(Config{
			Fetcher: node, Logger: slog.New(slog.DiscardHandler), Deadline: 2 * time.Second, Frozen: func() bool { return false },
			Head: func() *ledger.Head { return head }, NextPublication: func() <-chan struct{} { return nil },
			Held: func(ledger.Query, ledger.Pubkey) (ledger.Account, ledger.View, error) {
				return ledger.Account{}, ledger.View{Head: head}, notHeld
			},
		})
		f.Begin(100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go f.Run(ctx)
		go func() { // the sequencer
			for {
				select {
				case a := <-f.Answers():
					f.Learn(a)
					a.Done(0)
				case <-ctx.Done():
					return
				}
			}
		}()
		ask := func(n int) error {
			_, _, err := f.Account(ledger.Query{}, key(n), ledger.Account{}, ledger.View{Head: head}, notHeld)
			return err
		}
		for n := range 30 * MaxFetches {
			if err := ask(n); !errors.Is(err, ledger.ErrFetching) {
				t.Fatalf("account %d: %v, want that it is being fetched", n, err)
			}
			time.Sleep(GiveUpAfter)
		}
		if s := f.Stats(); s.Waiting != 0 || s.Stale != s.Keys {
			t.Errorf("%+v, want that all were given up", s)
		}
		time.AfterFunc(time.Second, func() { node.slot.Store(100) })
		var missing *ledger.NotFoundError
		if err := ask(0); !errors.As(err, &missing) || missing.Absence != ledger.AccountNotFound {
			t.Errorf("a node that gets there after a second: %v, want that there is no such account", err)
		}
	})
}
