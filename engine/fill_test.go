package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestManyQuestionsAreOneFetch(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.gate = make(chan struct{})
		const keys, askers = 1000, 3
		for i := range keys {
			u.at(100, lamports(key(i), ledger.Lamports(i+1)))
		}
		var replies []<-chan reply
		for range askers {
			for i := range keys {
				replies = append(replies, n.ask(ledger.Query{}, key(i)))
			}
			synctest.Wait()
		}
		waiting := n.Stats().Fill.Waiting
		close(u.gate)
		for i, c := range replies {
			n.mustGet(c, ledger.Lamports(i%keys+1))
		}
		synctest.Wait() // a publication may have answered before the filler was done with the key
		times := make(map[ledger.Pubkey]int)
		for _, keys := range u.asked {
			if len(keys) > ledger.MaxFetchKeys {
				t.Errorf("asked for %d keys at once", len(keys))
			}
			for _, k := range keys {
				if times[k]++; times[k] > 1 {
					t.Errorf("key %v was asked for %d times", k, times[k])
				}
			}
		}
		if len(times) != keys || u.most > fill.MaxFetches || len(u.asked) > keys/ledger.MaxFetchKeys+fill.MaxFetches+1 {
			t.Errorf("%d keys in %d questions, %d at once", len(times), len(u.asked), u.most)
		}
		ledgertest.Equal(t, waiting, keys, "keys that were waited for")
		ledgertest.Equal(t, n.Stats().Fill.Waiting, 0, "keys that are waited for at the end")
	})
}

func TestTooManyWantsAreRefused(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.gate = make(chan struct{})
		var replies []<-chan reply
		for i := range fill.MaxPending {
			replies = append(replies, n.ask(ledger.Query{}, key(10+i)))
		}
		pending(t, replies[fill.MaxPending-1])
		n.mustRefuse(ledger.Query{}, key(1), ledger.ErrFetchBusy)
		pending(t, n.ask(ledger.Query{}, key(10))) // of one that is wanted already
		close(u.gate)
		for _, c := range replies {
			n.mustGet(c, 0)
		}
		n.mustAnswer(ledger.Query{}, key(1), 5)
	})
}

// TestAnswerFromBeforeTheRootIsAskedForAgain has the node answer as of a slot that is too old: for a while, for many more
// accounts than there are requests at once, each until it is given up, and then once more for a while.
func TestAnswerFromBeforeTheRootIsAskedForAgain(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.at(99)
		u.takes = 130 * time.Millisecond // so that a request is given up while it waits to be repeated
		const keys = 30 * fill.MaxFetches
		for i := range keys {
			n.mustRefuse(ledger.Query{}, key(2+i), ledger.ErrFetching)
			time.Sleep(fill.GiveUpAfter)
		}
		s := n.Stats().Fill
		if most := uint64(keys * 6); s.Waiting != 0 || s.Stale != s.Keys || s.Fetches > most {
			t.Errorf("%+v, want that all were given up, and at most %d requests", s, most)
		}
		c := n.ask(ledger.Query{}, key(1))
		time.Sleep(time.Second)
		pending(t, c)
		u.at(100)
		n.mustGet(c, 5)
	})
}

func TestAQuestionWaitsUntilItsDeadline(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.at(99)
		for _, left := range []time.Duration{time.Second / 2, 0} {
			began := time.Now()
			n.mustRefuse(ledger.Query{Deadline: began.Add(left)}, key(1), ledger.ErrFetching)
			ledgertest.Equal(t, time.Since(began), left, "the time that was waited")
		}
	})
}
