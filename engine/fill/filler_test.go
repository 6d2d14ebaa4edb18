package fill

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/ledgertest"
)

var key = ledgertest.Key

// TestAnswerGivesWayToNewerBlocks holds an answer of slot 100 against what later blocks did to its account.
func TestAnswerGivesWayToNewerBlocks(t *testing.T) {
	closes, opens := ledger.AccountWrite{Pubkey: key(1)}, ledger.AccountWrite{Pubkey: key(1), Lamports: 2}
	tests := map[string]struct {
		partial bool
		writes  []ledger.AccountWrite // one a block
		learned bool
		absent  ledger.Slot
	}{
		"not written":              {false, nil, true, 0},
		"in part, not written":     {true, nil, true, 0},
		"written":                  {false, []ledger.AccountWrite{opens}, false, 0}, // the state tells
		"in part, written":         {true, []ledger.AccountWrite{opens}, true, 0},
		"closed":                   {false, []ledger.AccountWrite{closes, closes}, false, 102},
		"opened again":             {false, []ledger.AccountWrite{closes, opens}, false, 0},
		"in part, of another life": {true, []ledger.AccountWrite{closes, opens}, false, 0},
	}
	for name, tt := range tests {
		f := New(Config{Frozen: func() bool { return false }})
		f.Begin(100)
		if _, err := f.await(key(1), tt.partial, 0); err != nil {
			t.Fatal(err)
		}
		for i, w := range tt.writes {
			f.Appended(&ledger.Block{Slot: ledger.Slot(101 + i), Accounts: []ledger.AccountWrite{w}})
		}
		said := &ledger.BaseState{Slot: 100, Accounts: []ledger.AccountWrite{{Pubkey: key(1), Lamports: 9}}}
		base := f.Learn(&Answer{base: said, done: make(chan struct{})})
		if absent, _ := f.remembered(key(1)); (base != nil) != tt.learned || absent.since != tt.absent {
			t.Errorf("%s: learned %v, absent since %d, want %v, %d", name, base != nil, absent.since, tt.learned, tt.absent)
		}
	}
}

func TestNegativeCacheIsBoundedAndExpires(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := New(Config{Frozen: func() bool { return false }})
		r := rand.New(rand.NewPCG(1, 1))
		for range 3 * maxNegative {
			f.addNegativeLocked(key(r.IntN(2*maxNegative)), absence{since: 7})
			if len(f.negative) > maxNegative {
				t.Fatalf("%d keys are remembered, want at most %d", len(f.negative), maxNegative)
			}
		}
		f.addNegativeLocked(key(-1), absence{since: 8})
		f.addNegativeLocked(key(-2), absence{since: 8})
		f.Appended(&ledger.Block{Slot: 9, Accounts: []ledger.AccountWrite{{Pubkey: key(-2), Lamports: 1}, {Pubkey: key(-1)}}})
		if _, ok := f.remembered(key(-2)); ok {
			t.Error("a key that a block made is still remembered as missing")
		}
		time.Sleep(NegativeFor - 1)
		if k, ok := f.remembered(key(-1)); !ok || k.since != 8 {
			t.Errorf("remembered as of %d, %v", k.since, ok)
		}
		time.Sleep(time.Nanosecond)
		if _, ok := f.remembered(key(-1)); ok {
			t.Error("a key is remembered for too long")
		}
	})
}

func TestTouchedKeysAreBoundedAndSayHowFarTheyReach(t *testing.T) {
	var ring recentWrites
	gone := func(slot ledger.Slot) ledger.Pubkey { return key(2 * int(slot)) }
	kept := func(slot ledger.Slot) ledger.Pubkey { return key(2*int(slot) + 1) }
	const root, last = 100, ledger.Slot(100 + 3*maxRecentBlocks)
	for slot := ledger.Slot(root); slot <= last; slot++ {
		ring.add(&ledger.Block{Slot: slot, Accounts: []ledger.AccountWrite{{Pubkey: gone(slot)}, {Pubkey: kept(slot), Lamports: 1}, {Pubkey: key(-1)}, {Pubkey: key(-1), Lamports: 1}}})
		if slot == root && ring.horizon != root {
			t.Errorf("with the root known, the horizon is %d", ring.horizon)
		}
	}
	if len(ring.blocks) != maxRecentBlocks || ring.keys != 3*maxRecentBlocks || ring.horizon != last-maxRecentBlocks {
		t.Errorf("%d blocks, %d keys, from slot %d", len(ring.blocks), ring.keys, ring.horizon)
	}
	tests := map[string]struct {
		after  ledger.Slot
		key    ledger.Pubkey
		alive  bool
		closed ledger.Slot
	}{
		"closed":              {last - 1, gone(last), false, last},
		"left alive":          {last - 1, kept(last), true, 0},
		"written at the slot": {last, kept(last), false, 0},
		"at the horizon":      {ring.horizon, gone(ring.horizon), false, 0},
		"after the horizon":   {ring.horizon, gone(ring.horizon + 1), false, ring.horizon + 1},
		"both in one block":   {last - 5, key(-1), true, last},
		"not written":         {ring.horizon, key(0), false, 0},
	}
	for name, tt := range tests {
		if alive, closed := ring.after(tt.after, tt.key); alive != tt.alive || closed != tt.closed {
			t.Errorf("%s: alive %v, closed at %d, want %v, %d", name, alive, closed, tt.alive, tt.closed)
		}
	}
	ring.rollBack(last - 1)
	if _, closed := ring.after(last-2, gone(last)); closed != 0 || ring.keys != 3*(maxRecentBlocks-1) {
		t.Errorf("closed at %d by a block that was undone; %d keys", closed, ring.keys)
	}
	large := &ledger.Block{Slot: last}
	for n := range maxRecentKeys + 1 {
		large.Accounts = append(large.Accounts, ledger.AccountWrite{Pubkey: key(n)})
	}
	ring.add(large)
	if ring.keys != 0 || ring.horizon != last {
		t.Errorf("a block that wrote too much is said to be known: %d keys, from slot %d", ring.keys, ring.horizon)
	}
}

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
