package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

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

// TestAnswerWaitsUntilTheChainGetsThere has the node be ahead, a little and for good.
func TestAnswerWaitsUntilTheChainGetsThere(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.at(102)
		c := n.ask(ledger.Query{}, key(1))
		b102 := child(rootBlock(100), 102, 0)
		n.send(b102, status(b102, ledger.StatusConfirmed))
		pending(t, c) // the chain here may be another one than the node's
		n.send(status(b102, ledger.StatusFinalized))
		if r := n.mustGet(c, 5); r.view.Tip().Slot != 102 {
			t.Errorf("answered at slot %d", r.view.Tip().Slot)
		}
		u.mustHaveBeenAsked(t, 1)

		u.at(1 << 63)
		n.mustRefuse(ledger.Query{}, key(2), ledger.ErrFetching)
		time.Sleep(fill.GiveUpAfter)
		synctest.Wait()
		if got := n.Stats().Fill.Waiting; got != 0 {
			t.Errorf("%d keys are still waited for", got)
		}
		u.at(102)
		n.mustAnswer(ledger.Query{}, key(2), 0)
	})
}

// TestAnswerFromBeforeTheRootIsAskedForAgain has the node answer as of a slot that is too old, for a while and without end.
func TestAnswerFromBeforeTheRootIsAskedForAgain(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.at(99)
		c := n.ask(ledger.Query{}, key(1))
		pending(t, c)
		u.at(100, lamports(key(1), 6))
		n.mustGet(c, 6)
		if s := n.Stats().Fill; s.Stale != 1 {
			t.Errorf("%+v, want one answer too old", s)
		}
		u.at(50)
		n.mustRefuse(ledger.Query{}, key(2), ledger.ErrFetching)
		time.Sleep(fill.GiveUpAfter)
		if s := n.Stats().Fill; s.Waiting != 0 || s.Fetches > uint64(fill.GiveUpAfter/fill.AgainAfter)+3 {
			t.Errorf("%+v, want that it was given up, and no storm", s)
		}
	})
}

// TestAccountWrittenMeanwhileIsTheBlocks has a block write an account that is being asked for.
func TestAccountWrittenMeanwhileIsTheBlocks(t *testing.T) {
	fillTest(t, func(t *testing.T, u *fakeNode, n *subject) {
		u.gate = make(chan struct{})
		c := n.ask(ledger.Query{}, key(1))
		pending(t, c)
		n.send(child(rootBlock(100), 101, 0, lamports(key(1), 6)))
		n.mustGet(c, 6) // what the block says is there at once
		version := n.Head().Tip(ledger.Processed).Version
		close(u.gate)
		synctest.Wait()
		if s := n.Stats().Fill; s.Waiting != 0 || n.Head().Tip(ledger.Processed).Version != version {
			t.Errorf("%+v, and learned what was before the block", s)
		}
	})
}

// TestFilterKeepsOutWhatIsFetched asks for accounts that a filter does not want.
func TestFilterKeepsOutWhatIsFetched(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out, in, listed, program := key(1), key(2), key(3), key(9)
		u := newFakeNode(100, lamports(out, 5), owned(in, 6, program), lamports(listed, 7))
		n := filling(t, u, Config{Filter: ledger.NewFilter([]ledger.Pubkey{program}, []ledger.Pubkey{listed})})
		defer n.mustStop()
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
		defer n.mustStop()
		synctest.Wait()
		c := n.ask(ledger.Query{}, key(1))
		pending(t, c)
		u.at(101, lamports(key(1), 0))
		n.mustGet(c, 0)
	})
}
