package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

func TestFirstQuestionFetchesAnAccount(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := key(1)
		u := newFakeNode(100, lamports(k, 77))
		n := filling(t, u, Config{})
		defer n.mustStop()
		before := n.Head().Tip(ledger.Processed)
		r := n.mustAnswer(ledger.Query{}, k, 77)
		tip := r.view.Tip()
		if tip.Slot != 100 || tip.Version <= before.Version || tip.Seq != before.Seq || r.account.Unknown() != 0 {
			t.Errorf("answered %+v at %+v, want all of it at slot 100, a newer version and no update", r.account, tip)
		}
		n.mustAnswer(ledger.Query{}, k, 77)
		n.mustAnswer(at(ledger.Finalized), k, 77) // nothing is unfinalized, so it is of the finalized block
		if u.questions() != 1 {
			t.Errorf("the node was asked %d times", u.questions())
		}
		block := child(rootBlock(100), 101, 0, lamports(k, 78))
		n.send(block)
		n.mustAnswer(ledger.Query{}, k, 78)
		updates := 0
		for _, r := range n.records() {
			for _, u := range r.Updates {
				if u.Account.Pubkey == k {
					updates++
				}
			}
		}
		if s := n.Stats().Fill; updates != 1 || u.questions() != 1 || s.Found != 1 || s.Fetches != 1 || s.Keys != 1 {
			t.Errorf("%d updates, %d questions, %+v; want one of each", updates, u.questions(), s)
		}
	})
}

func TestManyQuestionsAreOneFetch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100)
		u.gate = make(chan struct{})
		const keys, askers = 1000, 3
		for i := range keys {
			u.accounts[key(i)] = lamports(key(i), ledger.Lamports(i+1))
		}
		n := filling(t, u, Config{})
		defer n.mustStop()
		var replies []<-chan reply
		for range askers {
			for i := range keys {
				replies = append(replies, n.ask(ledger.Query{}, key(i)))
			}
			synctest.Wait()
		}
		if got := n.Stats().Fill.Waiting; got != keys {
			t.Errorf("%d keys are waited for, want %d", got, keys)
		}
		close(u.gate)
		for i, c := range replies {
			if r := <-c; r.err != nil || r.account.Lamports != ledger.Lamports(i%keys+1) {
				t.Fatalf("key %d: %d lamports, err %v", i%keys, r.account.Lamports, r.err)
			}
		}
		times := make(map[ledger.Pubkey]int)
		for _, keys := range u.asked {
			if len(keys) > ledger.MaxFetchKeys {
				t.Errorf("asked for %d keys at once", len(keys))
			}
			for _, k := range keys {
				times[k]++
			}
		}
		for k, n := range times {
			if n != 1 {
				t.Errorf("key %v was asked for %d times", k, n)
			}
		}
		if len(times) != keys || u.most > fill.MaxFetches || len(u.asked) > keys/ledger.MaxFetchKeys+fill.MaxFetches+1 {
			t.Errorf("%d keys in %d questions, %d at once", len(times), len(u.asked), u.most)
		}
		if got := n.Stats().Fill.Waiting; got != 0 {
			t.Errorf("%d keys are waited for at the end", got)
		}
	})
}

func TestTooManyWantsAreRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100)
		u.gate = make(chan struct{})
		n := filling(t, u, Config{})
		defer n.mustStop()
		var replies []<-chan reply
		for i := range fill.MaxPending {
			replies = append(replies, n.ask(ledger.Query{}, key(i)))
		}
		pending(t, replies[fill.MaxPending-1])
		if r := <-n.ask(ledger.Query{}, key(fill.MaxPending)); !errors.Is(r.err, ledger.ErrFetchBusy) {
			t.Errorf("one more: %v, want busy", r.err)
		}
		pending(t, n.ask(ledger.Query{}, key(0))) // of one that is wanted already
		close(u.gate)
		for _, c := range replies {
			if r := <-c; !errors.Is(r.err, ledger.ErrNotFound) {
				t.Fatalf("%v, want not found", r.err)
			}
		}
		n.mustAnswer(ledger.Query{}, key(fill.MaxPending), 0)
	})
}

func TestQuestionsHaveTheirDeadline(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := key(1)
		u := newFakeNode(100, lamports(k, 5))
		u.gate = make(chan struct{})
		n := filling(t, u, Config{})
		defer n.mustStop()
		begun := time.Now()
		r := <-n.ask(ledger.Query{Wait: time.Second}, k)
		if took := time.Since(begun); !errors.Is(r.err, ledger.ErrFetching) || took != queryDeadline {
			t.Errorf("%v after %v, want that it is being fetched after %v", r.err, took, queryDeadline)
		}
		close(u.gate)
		synctest.Wait()
		n.mustAnswer(ledger.Query{}, k, 5)
		if u.questions() != 1 {
			t.Errorf("the node was asked %d times: what came late was lost", u.questions())
		}
	})
}

func TestNodeThatIsDownIsLeftAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := key(1)
		u := newFakeNode(100, lamports(k, 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		tests := []struct {
			err   error
			pause time.Duration
			busy  bool
		}{
			{&ledger.UpstreamError{Err: errors.New("no route")}, fill.PauseAfter, false},
			{&ledger.UpstreamError{Busy: true, RetryAfter: 7 * time.Second}, 7 * time.Second, true},
			{&ledger.UpstreamError{Busy: true, RetryAfter: time.Hour}, ledger.MaxRetryAfter, true},
			{errors.New("anything"), fill.PauseAfter, false},
		}
		for _, tt := range tests {
			u.fails(tt.err)
			asked := u.questions()
			begun := time.Now()
			for time.Since(begun) < tt.pause {
				var upstream *ledger.UpstreamError
				if r := <-n.ask(ledger.Query{}, k); !errors.As(r.err, &upstream) || upstream.Busy != tt.busy || !errors.Is(r.err, ledger.ErrUnavailable) {
					t.Fatalf("%v, want that the node is down (busy: %v)", r.err, tt.busy)
				} else if left := tt.pause - time.Since(begun); upstream.RetryAfter != left {
					t.Fatalf("clients are told to wait %v, and the node is left alone for %v more", upstream.RetryAfter, left)
				}
				if _, _, err := n.Account(ledger.Query{}, key(2)); !errors.Is(err, ledger.ErrUnavailable) {
					t.Fatalf("of another account: %v", err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if got := u.questions() - asked; got != 1 {
				t.Errorf("asked %d times while it is to be left alone for %v", got, tt.pause)
			}
		}
		u.fails(nil)
		n.mustAnswer(ledger.Query{}, k, 5)
	})
}

func TestMissingAccountIsRememberedForAWhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, root := key(1), rootBlock(100)
		u := newFakeNode(100)
		n := filling(t, u, Config{})
		defer n.mustStop()
		begun := time.Now()
		for time.Since(begun) < fill.NegativeFor {
			n.mustAnswer(ledger.Query{}, k, 0)
			time.Sleep(time.Second)
		}
		if u.questions() != 1 {
			t.Errorf("a bot that polls for %v asked the node %d times", fill.NegativeFor, u.questions())
		}
		n.mustAnswer(ledger.Query{}, k, 0)
		if u.questions() != 2 {
			t.Errorf("after %v the node was asked %d times, want once more", fill.NegativeFor, u.questions())
		}
		// A block that makes it wins at once, and it can be closed and asked for again.
		b101 := child(root, 101, 0, lamports(k, 9))
		n.send(b101)
		n.mustAnswer(ledger.Query{}, k, 9)
		n.send(child(b101, 102, 0, lamports(k, 0)))
		_, _, err := n.Account(ledger.Query{}, k)
		if why, ok := absence(err); !ok || why.Absence != ledger.AccountClosed || why.Slot != 102 {
			t.Errorf("after it was closed: %v", err)
		}
		if u.questions() != 2 {
			t.Errorf("the node was asked %d times for an account that blocks tell of", u.questions())
		}
	})
}

func TestAnswersThatAreNoneChangeNothing(t *testing.T) {
	k, other := key(1), key(2)
	spoils := map[string]func(*ledger.BaseState) *ledger.BaseState{
		"nothing":   func(*ledger.BaseState) *ledger.BaseState { return nil },
		"no key":    func(b *ledger.BaseState) *ledger.BaseState { b.Accounts = nil; return b },
		"other key": func(b *ledger.BaseState) *ledger.BaseState { b.Accounts[0].Pubkey = other; return b },
		"more keys": func(b *ledger.BaseState) *ledger.BaseState {
			b.Accounts = append(b.Accounts, lamports(other, 1))
			return b
		},
		"twice": func(b *ledger.BaseState) *ledger.BaseState {
			b.Accounts = append(b.Accounts, lamports(k, 1))
			return b
		},
	}
	for name, spoil := range spoils {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				u := newFakeNode(100, lamports(k, 5))
				u.spoil = spoil
				n := filling(t, u, Config{})
				defer n.mustStop()
				before := n.Head().StateHash
				var upstream *ledger.UpstreamError
				if r := <-n.ask(ledger.Query{}, k); !errors.As(r.err, &upstream) {
					t.Errorf("%v, want an upstream error", r.err)
				}
				if n.Head().StateHash != before {
					t.Error("the state changed")
				}
			})
		})
	}
}

func TestMintsNobodyAskedForAreNotLearned(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100, lamports(key(1), 5))
		u.spoil = func(b *ledger.BaseState) *ledger.BaseState {
			b.Mints = append(b.Mints, ledger.MintWrite{Pubkey: key(2), Mint: ledger.Mint{Decimals: 3}})
			return b
		}
		n := filling(t, u, Config{})
		defer n.mustStop()
		n.mustAnswer(ledger.Query{}, key(1), 5)
		for _, r := range n.records() {
			if r.Kind == ledger.BaseRecord && len(r.Base.Mints) != 0 {
				t.Errorf("learned %+v", r.Base.Mints)
			}
		}
	})
}

func TestStoppingAnswersWhoWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100)
		u.gate = make(chan struct{})
		n := filling(t, u, Config{})
		c := n.ask(ledger.Query{}, key(1))
		pending(t, c)
		begun := time.Now()
		n.mustStop()
		if r := <-c; !errors.Is(r.err, ledger.ErrUnavailable) || time.Since(begun) != 0 {
			t.Errorf("%v after %v, want unavailable at once", r.err, time.Since(begun))
		}
		if r := <-n.ask(ledger.Query{}, key(2)); !errors.Is(r.err, ledger.ErrUnavailable) {
			t.Errorf("after the end: %v", r.err)
		}
	})
}

func TestNothingIsFetchedWhileIngestStandsStill(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100, lamports(key(1), 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		n.mustAnswer(ledger.Query{}, key(1), 5)
		root := rootBlock(100)
		n.send(status(root, ledger.StatusDead)) // what is final is taken back: ingest stops
		if why := n.Status().Unhealthy; !strings.Contains(why, "ingest stopped") {
			t.Fatalf("health says %q", why)
		}
		if r := <-n.ask(ledger.Query{}, key(2)); !errors.Is(r.err, ledger.ErrUnavailable) || u.questions() != 1 {
			t.Errorf("%v, %d questions, want unavailable without another one", r.err, u.questions())
		}
		n.mustAnswer(ledger.Query{}, key(1), 5)
	})
}

// TestAccountKnownInPartIsCompleted has each block write an account in part: it is completed when the block is final that was
// the newest when it was first asked for.
func TestAccountKnownInPartIsCompleted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, root := key(1), rootBlock(100)
		u := newFakeNode(100, lamports(k, 7))
		n := filling(t, u, Config{})
		defer n.mustStop()
		asIs := func(want ledger.Lamports) {
			t.Helper()
			begun := time.Now()
			if r := n.mustAnswer(ledger.Query{}, k, want); r.account.Unknown() != ledger.FieldsShown || time.Since(begun) != 0 {
				t.Errorf("unknown is %b after %v, want what is known at once", r.account.Unknown(), time.Since(begun))
			}
		}
		b101 := child(root, 101, 0, ledger.AccountWrite{Pubkey: k, Lamports: 8})
		b102 := child(b101, 102, 0, ledger.AccountWrite{Pubkey: k, Lamports: 9})
		n.send(b101)
		asIs(8)
		n.send(b102)
		asIs(9)
		n.send(status(b102, ledger.StatusConfirmed))
		if u.questions() != 0 {
			t.Errorf("the node was asked %d times before the block is final", u.questions())
		}
		n.send(status(b101, ledger.StatusFinalized))
		c := n.ask(ledger.Query{}, k)
		pending(t, c) // the node stands at 100, before the block
		u.at(101, owned(k, 8, key(9)))
		if r := <-c; r.err != nil || r.account.Unknown() != 0 || r.account.Owner != key(9) || r.account.Lamports != 9 {
			t.Errorf("completed to %+v, %v", r.account, r.err)
		}
		asked := u.questions()
		n.mustAnswer(ledger.Query{}, k, 9)
		if u.questions() != asked {
			t.Error("what is complete was fetched again")
		}
		// It is closed and opened again: what the node says of before tells of an earlier life.
		b103 := child(b102, 103, 0, lamports(k, 0))
		b104 := child(b103, 104, 0, ledger.AccountWrite{Pubkey: k, Lamports: 3})
		n.send(b103, b104)
		asIs(3)
		u.fails(&ledger.UpstreamError{})
		n.send(status(b104, ledger.StatusFinalized))
		asIs(3)
	})
}
