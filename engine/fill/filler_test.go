package fill

import (
	"context"
	"log/slog"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/published"
)

var key = ledgertest.Key

// TestNegativeCacheIsBounded fills the cache, and has blocks change what it says.
func TestNegativeCacheIsBounded(t *testing.T) {
	f := New(Config{})
	r := ledgertest.Seeded(t, 1)
	for range 3 * maxNegative {
		f.addNegativeLocked(key(r.IntN(2*maxNegative)), absence{since: 7})
		if len(f.negative) > maxNegative {
			t.Fatalf("%d keys are remembered, want at most %d", len(f.negative), maxNegative)
		}
	}
	f.addNegativeLocked(key(-1), absence{since: 8})
	f.Appended(&ledger.Block{Slot: 9, Accounts: []ledger.AccountWrite{{Pubkey: key(-1), Lamports: 1}}})
	if _, ok := f.remembered(key(-1)); ok {
		t.Error("a key that a block made is still remembered as missing")
	}
	if f.RolledBack(8); len(f.negative) > 0 {
		t.Errorf("%d keys are remembered after a rollback", len(f.negative))
	}
}

// TestPendingKeysAreBounded waits for as many keys as may be waited for. All who ask for one of them wait for one fetch, and a request has few of them.
func TestPendingKeysAreBounded(t *testing.T) {
	no := func() bool { return false }
	f := New(Config{Frozen: no, Full: no, MayFetch: func() bool { return true }})
	for n := range MaxPending {
		_, err := f.await(key(n), false, 0)
		ledgertest.Must(t, err)
	}
	_, err := f.await(key(-1), false, 0)
	ledgertest.ErrorIs(t, err, ledger.ErrFetchBusy, "one key more")
	first, err := f.await(key(0), false, 0)
	if err != nil || first != f.pending[key(0)] || len(f.pending) != MaxPending {
		t.Errorf("the first key once more: %v, %d keys are pending", err, len(f.pending))
	}
	ledgertest.Equal(t, len(f.take(0)), ledger.MaxFetchKeys, "keys of a request")
}

func TestWantedKeysAreBounded(t *testing.T) {
	f := New(Config{})
	for n := range 2 * maxWanted {
		f.Want(key(n), key(n/2))
	}
	ledgertest.Equal(t, len(f.wanted), maxWanted, "wanted keys")
	asked := 0
	f.Held = func(ledger.Query, ledger.Pubkey) (ledger.Account, ledger.View, error) {
		asked++
		return ledger.Account{}, ledger.View{}, ledger.ErrUnavailable
	}
	for most := ledger.MaxFetchKeys; len(f.wanted) > 0; most += ledger.MaxFetchKeys {
		ledgertest.Equal(t, len(f.wake), 1, "%d wanted: what wakes who looks at them", len(f.wanted))
		<-f.wake
		if f.lookAtWanted(t.Context()); asked > most {
			t.Fatalf("%d keys are looked at, want at most %d by then", asked, most)
		}
	}
	ledgertest.Equal(t, asked, maxWanted, "keys that are looked at")
}

// TestRecentWritesAreThoseOfTheNewestBlocks begins with a block that does both to two keys.
func TestRecentWritesAreThoseOfTheNewestBlocks(t *testing.T) {
	var recent recentWrites
	first, last := ledger.Slot(7), ledger.Slot(3*maxRecentBlocks)
	recent.add(&ledger.Block{Slot: first, Accounts: []ledger.AccountWrite{
		{Pubkey: key(1)}, {Pubkey: key(2), Lamports: 1}, {Pubkey: key(1), Lamports: 1}, {Pubkey: key(2)},
	}})
	ledgertest.Equal(t, recent.horizon, first, "the slot up to which nothing is known after the root")
	for n := 1; n <= 2; n++ {
		alive, closed := recent.after(first-1, key(n))
		ledgertest.Holds(t, alive && closed == first, "key %d: alive %v, closed at %d", n, alive, closed)
		alive, closed = recent.after(first, key(n))
		ledgertest.Holds(t, !alive && closed == 0, "key %d, after the block: alive %v, closed at %d", n, alive, closed)
	}
	for slot := first + 1; slot <= last; slot++ {
		recent.add(&ledger.Block{Slot: slot, Accounts: []ledger.AccountWrite{{Pubkey: key(int(slot))}}})
	}
	ledgertest.Equal(t, recent.horizon, last-maxRecentBlocks, "the slot up to which nothing is known")
	recent.rollBack(last - 2)
	ledgertest.Equal(t, recent.keys, maxRecentBlocks-2, "keys of the blocks that are left")
	large := &ledger.Block{Slot: last}
	for n := range maxRecentKeys + 1 {
		large.Accounts = append(large.Accounts, ledger.AccountWrite{Pubkey: key(n)})
	}
	recent.add(large)
	ledgertest.Equal(t, recent.keys, 0, "keys once a block wrote too much")
	ledgertest.Equal(t, recent.horizon, last, "the slot up to which nothing is known then")
}

// TestAnswerGivesWayToNewerBlocks holds an answer of slot 100 against what later blocks did to its account.
func TestAnswerGivesWayToNewerBlocks(t *testing.T) {
	closes, opens := ledger.AccountWrite{Pubkey: key(1)}, ledger.AccountWrite{Pubkey: key(1), Lamports: 2}
	for name, tt := range map[string]struct {
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
	} {
		f := New(Config{Frozen: func() bool { return false }, Full: func() bool { return false }, MayFetch: func() bool { return true }})
		f.Begin(100)
		_, err := f.await(key(1), tt.partial, 0)
		ledgertest.Must(t, err)
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

// TestKeyThatIsAskedForAgainOutlivesTheAnswerBefore: an answer whose record does not become visible in time fails for those keys alone that it
// has not ended. A block has opened one of these meanwhile, and a query asks for it again.
func TestKeyThatIsAskedForAgainOutlivesTheAnswerBefore(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		f := New(Config{
			Board: published.NewBoard(nil), Frozen: func() bool { return false }, Full: func() bool { return false }, MayFetch: func() bool { return true },
			Logger: slog.New(slog.DiscardHandler), Fetcher: fetchFunc(func() *ledger.BaseState {
				return &ledger.BaseState{Slot: 100, Accounts: []ledger.AccountWrite{{Pubkey: key(1)}, {Pubkey: key(2), Lamports: 9}}}
			}),
		})
		f.Begin(100)
		f.Board.Publish(&ledger.Publication{Head: &ledger.Head{HasBlock: true, Tips: [ledger.Commitments]ledger.Tip{{Slot: 100}, {Slot: 100}, {Slot: 100}}}})
		for n := 1; n <= 2; n++ {
			_, err := f.await(key(n), false, 0)
			ledgertest.Must(t, err)
		}
		keys := f.take(100)
		ledgertest.Must(t, f.fetches.Acquire(t.Context(), 1))
		served := make(chan struct{})
		go func() { defer close(served); f.serve(t.Context(), keys) }()
		a := <-f.Answers()
		if f.Learn(a) == nil {
			t.Fatal("nothing is learned")
		}
		f.Appended(&ledger.Block{Slot: 101, Accounts: []ledger.AccountWrite{{Pubkey: key(1), Lamports: 1}}})
		again, err := f.await(key(1), false, 0)
		ledgertest.Must(t, err)
		a.Done(7)
		<-served
		if got := f.take(100); len(got) != 1 || got[0] != key(1) || f.pending[key(1)] != again {
			t.Errorf("after the answer %v are to be fetched, want the key that was asked for again", got)
		}
	})
}

// fetchFunc answers every request alike.
type fetchFunc func() *ledger.BaseState

func (f fetchFunc) Fetch(context.Context, []ledger.Pubkey, ledger.Commitment) (*ledger.BaseState, error) {
	return f(), nil
}
