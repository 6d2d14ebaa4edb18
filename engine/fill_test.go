package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

func TestFirstQuestionFetchesAnAccount(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		k, other := key(1), key(2)
		u.spoil = func(b *ledger.BaseState) *ledger.BaseState { // with a mint that nobody asked for
			b.Mints = append(b.Mints, ledger.MintWrite{Pubkey: other, Mint: ledger.Mint{Decimals: 3}})
			return b
		}
		before := n.Head().Tip(ledger.Processed)
		r := n.mustAnswer(ledger.Query{}, k, 5)
		tip := r.view.Tip()
		if tip.Slot != 100 || tip.Version <= before.Version || tip.Seq != before.Seq || r.account.Unknown() != 0 {
			t.Errorf("answered %+v at %+v, want all of it at slot 100, a newer version and no update", r.account, tip)
		}
		if mints, _, err := n.Mints(ledger.Query{}, []ledger.Pubkey{other}); err != nil || mints[0] != nil {
			t.Errorf("learned %+v, %v", mints[0], err)
		}
		n.mustAnswer(at(ledger.Finalized), k, 5) // nothing is unfinalized, so it is of the finalized block
		n.send(child(rootBlock(100), 101, 0, lamports(k, 78)))
		n.mustAnswer(ledger.Query{}, k, 78)
		u.mustHaveBeenAsked(t, 1)
		s, seq := n.Stats().Fill, n.Head().Tip(ledger.Processed).Seq
		if seq != before.Seq+1 || s.Found != 1 || s.Fetches != 1 || s.Keys != 1 {
			t.Errorf("%+v, up to update %d; want one of each", s, seq)
		}
	})
}

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

func TestNodeThatIsDownIsLeftAlone(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		for i, tt := range []struct {
			err   error
			pause time.Duration
			busy  bool
		}{
			{&ledger.UpstreamError{Err: errors.New("no route")}, fill.PauseAfter, false},
			{&ledger.UpstreamError{Busy: true, RetryAfter: 7 * time.Second}, 7 * time.Second, true},
			{&ledger.UpstreamError{Busy: true, RetryAfter: time.Hour}, ledger.MaxRetryAfter, true},
			{errors.New("anything"), fill.PauseAfter, false},
		} {
			u.fails(tt.err)
			begun := time.Now()
			for time.Since(begun) < tt.pause {
				r := n.mustRefuse(ledger.Query{}, key(1), ledger.ErrUnavailable)
				var upstream *ledger.UpstreamError
				if left := tt.pause - time.Since(begun); !errors.As(r.err, &upstream) || strings.Contains(r.err.Error(), "busy") != tt.busy || upstream.RetryAfter != left {
					t.Fatalf("%v, want that the node is down (busy: %v) and left alone for %v more", r.err, tt.busy, left)
				}
				n.mustRefuse(ledger.Query{}, key(2), ledger.ErrUnavailable)
				time.Sleep(100 * time.Millisecond)
			}
			u.mustHaveBeenAsked(t, i+1)
		}
		u.fails(nil)
		n.mustAnswer(ledger.Query{}, key(1), 5)
	})
}

func TestMissingAccountIsRememberedForAWhile(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		k := key(2)
		for begun := time.Now(); time.Since(begun) < fill.NegativeFor; time.Sleep(time.Second) {
			n.mustAnswer(ledger.Query{}, k, 0)
			u.mustHaveBeenAsked(t, 1)
		}
		n.mustAnswer(ledger.Query{}, k, 0)
		u.mustHaveBeenAsked(t, 2)
		// A block that makes it wins at once, and it can be closed and asked for again.
		b101 := child(rootBlock(100), 101, 0, lamports(k, 9))
		n.send(b101)
		n.mustAnswer(ledger.Query{}, k, 9)
		n.send(child(b101, 102, 0, lamports(k, 0)))
		r := n.mustRefuse(ledger.Query{}, k, ledger.ErrNotFound)
		if why, _ := absence(r.err); why.Absence != ledger.AccountClosed || why.Slot != 102 {
			t.Errorf("after it was closed: %v", r.err)
		}
		u.mustHaveBeenAsked(t, 2)
	})
}

func TestAnswersThatAreNoneChangeNothing(t *testing.T) {
	k, other := key(1), key(2)
	for name, answer := range map[string]*ledger.BaseState{
		"nothing":   nil,
		"no key":    {},
		"other key": {Accounts: []ledger.AccountWrite{lamports(other, 1)}},
		"more keys": {Accounts: []ledger.AccountWrite{lamports(k, 5), lamports(other, 1)}},
		"twice":     {Accounts: []ledger.AccountWrite{lamports(k, 5), lamports(k, 1)}},
	} {
		fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
			u.spoil = func(b *ledger.BaseState) *ledger.BaseState {
				if answer != nil {
					answer.Slot = b.Slot
				}
				return answer
			}
			before := n.Head().StateHash
			var upstream *ledger.UpstreamError
			if r := <-n.ask(ledger.Query{}, k); !errors.As(r.err, &upstream) || n.Head().StateHash != before {
				t.Errorf("%s: %v, want an upstream error and the state as before", name, r.err)
			}
		})
	}
}

func TestStoppingAnswersWhoWaits(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.gate = make(chan struct{})
		c := n.ask(ledger.Query{}, key(1))
		pending(t, c)
		begun := time.Now()
		n.mustStop()
		if r := <-c; !errors.Is(r.err, ledger.ErrUnavailable) || time.Since(begun) != 0 {
			t.Errorf("%v after %v, want unavailable at once", r.err, time.Since(begun))
		}
		n.mustRefuse(ledger.Query{}, key(2), ledger.ErrUnavailable)
	})
}

func TestNothingIsFetchedWhileIngestStandsStill(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		n.mustAnswer(ledger.Query{}, key(1), 5)
		n.send(status(rootBlock(100), ledger.StatusDead)) // what is final is taken back: ingest stops
		n.mustSay("ingest stopped")
		n.mustRefuse(ledger.Query{}, key(2), ledger.ErrUnavailable)
		n.mustAnswer(ledger.Query{}, key(1), 5)
		u.mustHaveBeenAsked(t, 1)
	})
}

// TestAccountKnownInPartIsCompleted has each block write an account in part: it is completed when the block is final
// that was the newest when it was first asked for.
func TestAccountKnownInPartIsCompleted(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		k := key(1)
		asIs := func(want ledger.Lamports) {
			t.Helper()
			begun := time.Now()
			if r := n.mustAnswer(ledger.Query{}, k, want); r.account.Unknown() != ledger.FieldsShown || time.Since(begun) != 0 {
				t.Errorf("unknown is %b after %v, want what is known at once", r.account.Unknown(), time.Since(begun))
			}
		}
		b101 := child(rootBlock(100), 101, 0, ledger.AccountWrite{Pubkey: k, Lamports: 8})
		b102 := child(b101, 102, 0, ledger.AccountWrite{Pubkey: k, Lamports: 9})
		n.send(b101)
		asIs(8)
		n.send(b102)
		asIs(9)
		n.send(status(b102, ledger.StatusConfirmed))
		u.mustHaveBeenAsked(t, 0) // before the block is final
		n.send(status(b101, ledger.StatusFinalized))
		c := n.ask(ledger.Query{}, k)
		pending(t, c) // the node stands at 100, before the block
		u.at(101, owned(k, 8, key(9)))
		if r := n.mustGet(c, 9); r.account.Unknown() != 0 || r.account.Owner != key(9) {
			t.Errorf("completed to %+v", r.account)
		}
		asked := u.questions()
		n.mustAnswer(ledger.Query{}, k, 9)
		u.mustHaveBeenAsked(t, asked)
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

// TestDataThatABlockMadeUnknownIsFetched has blocks write an account of which they tell no data, as it changes with its lamports as they were: the data
// is unknown, and fetched by the first question after the block is final.
func TestDataThatABlockMadeUnknownIsFetched(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, block := key(1), rootBlock(100)
		held, err := ledger.ParseDataPrograms(key(9).String())
		must(t, err)
		u := newFakeNode(100)
		n := filling(t, u, bound(t, Config{}, nil, held))
		data := func() string {
			t.Helper()
			accounts, _, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{k})
			must(t, err)
			if accounts[0].Known&ledger.FieldData == 0 {
				return "unknown"
			}
			return string(accounts[0].Data.Bytes())
		}
		for _, told := range []string{"one", "", "three"} {
			w := owned(k, 8, key(9))
			block = child(block, block.Slot+1, 0, w)
			n.send(block)
			asked := u.questions()
			n.mustAnswer(ledger.Query{}, k, 8)
			ledgertest.Equal(t, data(), "unknown", "the data after the block")
			u.mustHaveBeenAsked(t, asked)
			w.SetData([]byte(told), held)
			u.at(block.Slot, w)
			n.send(status(block, ledger.StatusFinalized))
			for range 2 {
				n.mustAnswer(ledger.Query{}, k, 8)
				ledgertest.Equal(t, data(), told, "the data once it is asked for")
			}
			u.mustHaveBeenAsked(t, asked+1)
		}
		other := owned(key(2), 5, key(10))
		block = child(block, block.Slot+1, 0, other)
		n.send(block, status(block, ledger.StatusFinalized))
		asked := u.questions()
		n.mustAnswer(ledger.Query{}, key(2), 5)
		u.mustHaveBeenAsked(t, asked) // whose data is not held
	})
}

// TestSysvarsDataIsFetchedAnewOnceItIsOld: the runtime changes it in every block, of which getBlock shows nothing. A stream shows it.
func TestSysvarsDataIsFetchedAnewOnceItIsOld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, block := key(1), rootBlock(100)
		u := newFakeNode(100)
		n := filling(t, u, bound(t, Config{}, nil, allData))
		// at has the chain and the node get to a slot, and expects the data of a slot, and that it was asked for so often.
		at := func(slot, want ledger.Slot, asked int) {
			t.Helper()
			for block.Slot < slot {
				block = child(block, block.Slot+1, 0)
				n.send(block, status(block, ledger.StatusFinalized))
			}
			w := owned(k, 8, ledger.SysvarProgram)
			w.SetData(fmt.Append(nil, slot), allData)
			u.at(slot, w)
			for range 2 {
				n.mustAnswer(ledger.Query{}, k, 8)
				accounts, _, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{k})
				must(t, err)
				ledgertest.Equal(t, string(accounts[0].Data.Bytes()), fmt.Sprint(want), "the data at slot %d", slot)
			}
			u.mustHaveBeenAsked(t, asked)
		}
		at(100, 100, 1)
		at(100+sysvarAge, 100, 1)
		at(101+sysvarAge, 101+sysvarAge, 2)
		n.info.Store(&ledger.SourceInfo{Stream: true})
		at(200, 101+sysvarAge, 2)
	})
}

// TestUnknownDataThatIsWantedIsFetchedWithoutAQuestion wants accounts as a subscription does: they are completed if they are held in part and data of theirs
// is held, and once more where a newer block has written them meanwhile. What is over the bound is left out.
func TestUnknownDataThatIsWantedIsFetchedWithoutAQuestion(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, other := key(1), key(2)
		held, err := ledger.ParseDataPrograms(key(9).String())
		must(t, err)
		told := owned(k, 8, key(9))
		told.SetData([]byte("told"), held)
		u := newFakeNode(101, told, owned(other, 5, key(10)))
		n := filling(t, u, bound(t, Config{}, nil, held))
		b101 := child(rootBlock(100), 101, 0, owned(k, 8, key(9)), owned(other, 5, key(10)))
		b102 := child(b101, 102, 0, owned(k, 8, key(9)))
		known := func() bool {
			accounts, _, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{k})
			must(t, err)
			return accounts[0].Known&ledger.FieldData != 0
		}
		n.send(b101)
		n.Want(other, key(3), k)
		synctest.Wait()
		u.mustHaveBeenAsked(t, 0) // before the block is final
		n.send(b102)
		n.Want(k)
		synctest.Wait()
		n.send(status(b101, ledger.StatusFinalized))
		synctest.Wait()
		u.mustHaveBeenAsked(t, 1)
		if known() {
			t.Error("an answer of before the newest block tells the data")
		}
		u.at(102)
		n.send(status(b102, ledger.StatusFinalized))
		synctest.Wait()
		u.mustHaveBeenAsked(t, 2)
		if !known() {
			t.Error("the data is not known once the newest block is final")
		}
		ledgertest.Equal(t, u.asked, [][]ledger.Pubkey{{k}, {k}}, "what the node was asked for")
	})
}

// TestMintsShownInPartAreFetchedUntilTheyAreAnswered has blocks show mints without what their extensions say, and a node that is
// down, then behind, and then tells it.
func TestMintsShownInPartAreFetchedUntilTheyAreAnswered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(101)
		n := filling(t, u, Config{MintsOnly: true})
		k, closed, tip := key(1), key(2), rootBlock(100)
		mint := func(k ledger.Pubkey, scaled ledger.Opt[bool]) ledger.AccountWrite {
			w := owned(k, 5, ledger.Token2022Program)
			w.Mint = &ledger.Mint{Decimals: 6, Scaled: scaled}
			return w
		}
		// next sends a final block, waits, and expects so many questions more at least and at most, and what is known then.
		next := func(least, most int, want ledger.Opt[bool], writes ...ledger.AccountWrite) {
			t.Helper()
			before := u.questions()
			tip = child(tip, tip.Slot+1, 0, writes...)
			n.send(tip, status(tip, ledger.StatusConfirmed), status(tip, ledger.StatusFinalized))
			time.Sleep(20 * time.Second)
			mints, _, err := n.Mints(ledger.Query{}, []ledger.Pubkey{k})
			if asked := u.questions() - before; err != nil || mints[0] == nil || mints[0].Scaled != want || asked < least || asked > most {
				t.Fatalf("slot %d: asked %d times, err = %v, known is %+v, want %+v", tip.Slot, asked, err, mints[0], want)
			}
		}
		var unknown ledger.Opt[bool]
		next(0, 0, unknown, mint(k, unknown), mint(closed, unknown)) // which the block may have opened
		u.fails(&ledger.UpstreamError{})
		next(10, 21, unknown, mint(k, unknown), lamports(closed, 0))
		u.fails(nil)
		u.at(101, mint(k, ledger.Some(true)))
		next(10, 50, unknown)
		u.at(102)
		next(1, 50, ledger.Some(true))
		next(0, 0, ledger.Some(true), mint(k, unknown))
		u.at(108, mint(k, ledger.Some(false)))
		next(0, 0, ledger.Some(true), mint(closed, ledger.Some(true)))
		next(0, 0, unknown, lamports(k, 0), mint(k, unknown)) // another one
		next(1, 2, ledger.Some(false))

		asked := u.questions()
		n.mustRefuse(ledger.Query{}, key(9), ledger.ErrNotFound)
		u.mustHaveBeenAsked(t, asked) // no query fetches
		ledgertest.Equal(t, n.Stats().Fill.Waiting, 0, "what still waits")
	})
}

// TestAnswerWaitsUntilTheChainGetsThere has the node be ahead, a little, for longer than a question may take, and for good.
func TestAnswerWaitsUntilTheChainGetsThere(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.at(102)
		c := n.ask(ledger.Query{}, key(1))
		b102 := child(rootBlock(100), 102, 0)
		n.send(b102, status(b102, ledger.StatusConfirmed))
		pending(t, c) // the chain here may be another one than the node's
		n.send(status(b102, ledger.StatusFinalized))
		ledgertest.Equal(t, n.mustGet(c, 5).view.Tip().Slot, 102, "the slot of the answer")
		u.mustHaveBeenAsked(t, 1)

		u.at(103, lamports(key(3), 7))
		begun := time.Now()
		n.mustRefuse(ledger.Query{Wait: time.Second}, key(3), ledger.ErrFetching)
		ledgertest.Equal(t, time.Since(begun), queryDeadline, "refused after")
		b103 := child(b102, 103, 0)
		n.send(b103, status(b103, ledger.StatusFinalized))
		n.mustAnswer(ledger.Query{}, key(3), 7)
		u.mustHaveBeenAsked(t, 2) // what came late was not lost

		u.at(1 << 63)
		n.mustRefuse(ledger.Query{}, key(2), ledger.ErrFetching)
		time.Sleep(fill.GiveUpAfter)
		synctest.Wait()
		ledgertest.Equal(t, n.Stats().Fill.Waiting, 0, "keys that are still waited for")
		u.at(103)
		n.mustAnswer(ledger.Query{}, key(2), 0)
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

func TestAFullNodeFetchesNoMore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := filling(t, newFakeNode(100, lamports(key(1), 5), lamports(key(2), 6), lamports(key(3), 7)), Config{FetchUpTo: 2})
		n.mustAnswer(ledger.Query{}, key(1), 5)
		n.mustAnswer(ledger.Query{}, key(2), 6)
		n.mustRefuse(ledger.Query{}, key(3), ledger.ErrFetchFull)
		n.mustAnswer(ledger.Query{}, key(1), 5)
		n.send(child(rootBlock(100), 101, 0, lamports(key(1), 0), lamports(key(4), 0)))
		n.mustAnswer(ledger.Query{}, key(3), 7) // there is room again
	})
}

// F47: where memory runs short nothing is fetched, and what is held is answered.
func TestNothingIsFetchedWhereMemoryRunsShort(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var short atomic.Bool
		n := filling(t, newFakeNode(100, lamports(key(1), 5), lamports(key(2), 6)), Config{MayFetch: func() bool { return !short.Load() }})
		n.mustAnswer(ledger.Query{}, key(1), 5)
		short.Store(true)
		n.mustRefuse(ledger.Query{}, key(2), ledger.ErrUnavailable)
		n.mustAnswer(ledger.Query{}, key(1), 5)
		short.Store(false)
		n.mustAnswer(ledger.Query{}, key(2), 6)
	})
}

// TestFilterKeepsOutWhatIsFetched asks for accounts that a filter does not want.
func TestFilterKeepsOutWhatIsFetched(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out, in, listed, program := key(1), key(2), key(3), key(9)
		u := newFakeNode(100, lamports(out, 5), owned(in, 6, program), lamports(listed, 7))
		n := filling(t, u, bound(t, Config{}, ledger.NewFilter([]ledger.Pubkey{program}, []ledger.Pubkey{listed}), nil))
		n.mustAnswer(ledger.Query{}, in, 6)
		n.mustAnswer(ledger.Query{}, listed, 7)
		for range 9 {
			r := n.mustRefuse(ledger.Query{}, out, ledger.ErrNotFound)
			if why, _ := absence(r.err); why.Absence != ledger.AccountNotIndexed {
				t.Fatalf("%v, want not indexed", r.err)
			}
			time.Sleep(time.Second)
		}
		u.mustHaveBeenAsked(t, 3)
		n.send(child(rootBlock(100), 101, 0, owned(out, 8, program), lamports(in, 9)))
		n.mustAnswer(ledger.Query{}, out, 8) // it came to be wanted
		n.mustAnswer(ledger.Query{}, in, 9)  // once held, followed
		n.mustAnswer(ledger.Query{}, key(4), 0)
	})
}

// TestAnswerFromBeforeTheSnapshotIsAskedForAgain restarts after a block that closed an account, of which
// the snapshot shows nothing.
func TestAnswerFromBeforeTheSnapshotIsAskedForAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100, lamports(key(1), 5))
		disk := vfstest.NewMemory()
		n := filling(t, u, onDisk(t, disk, Config{}))
		closes := child(rootBlock(100), 101, 0, lamports(key(1), 0))
		n.send(closes, status(closes, ledger.StatusFinalized))
		n.mustStop()
		n = startNode(t, partial(), onDisk(t, disk.Crash(1, 1), Config{Fetcher: u}))
		synctest.Wait()
		c := n.ask(ledger.Query{}, key(1))
		pending(t, c)
		u.at(101, lamports(key(1), 0))
		n.mustGet(c, 0)
	})
}
