package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/fill"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

func TestAnswerWaitsUntilTheChainGetsThere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, root := key(1), rootBlock(100)
		u := newFakeNode(103, lamports(k, 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		c := n.ask(ledger.Query{}, k)
		pending(t, c)
		b102 := child(root, 102, 0)
		b103 := child(b102, 103, 0)
		n.send(b102, b103)
		pending(t, c) // the chain here may be another one than the node's
		n.send(status(b103, ledger.StatusConfirmed), status(b102, ledger.StatusFinalized))
		pending(t, c)
		n.send(status(b103, ledger.StatusFinalized))
		if r := <-c; r.err != nil || r.view.Tip().Slot != 103 {
			t.Errorf("answered at slot %d, err %v", r.view.Tip().Slot, r.err)
		}
		if u.questions() != 1 {
			t.Errorf("the node was asked %d times", u.questions())
		}
	})
}

func TestAnswerFarAheadIsGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(1<<63, lamports(key(1), 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		if r := <-n.ask(ledger.Query{}, key(1)); !errors.Is(r.err, ledger.ErrFetching) {
			t.Errorf("%v", r.err)
		}
		time.Sleep(fill.GiveUpAfter)
		synctest.Wait()
		if got := n.Stats().Fill.Waiting; got != 0 {
			t.Errorf("%d keys are still waited for", got)
		}
		u.at(100)
		n.mustAnswer(ledger.Query{}, key(1), 5)
	})
}

func TestAnswerFromBeforeTheRootIsAskedForAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := key(1)
		u := newFakeNode(99, lamports(k, 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		c := n.ask(ledger.Query{}, k)
		pending(t, c)
		u.at(100, lamports(k, 6))
		if r := <-c; r.err != nil || r.account.Lamports != 6 {
			t.Errorf("%d lamports, err %v", r.account.Lamports, r.err)
		}
		if s := n.Stats().Fill; s.Stale != 1 {
			t.Errorf("%+v, want one answer too old", s)
		}
	})
}

// TestAnswerFromBeforeTheSnapshotIsAskedForAgain restarts behind a block that closed an account, of which
// the snapshot shows nothing.
func TestAnswerFromBeforeTheSnapshotIsAskedForAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := key(1)
		u := newFakeNode(100, lamports(k, 5))
		disk := vfstest.NewMemory()
		n := filling(t, u, onDisk(t, disk, Config{}))
		closes := child(rootBlock(100), 101, 0, lamports(k, 0))
		n.send(closes, status(closes, ledger.StatusFinalized))
		n.mustStop()

		c := onDisk(t, disk.Crash(1, 1), Config{})
		c.Fetcher = u
		n = startNode(t, partial(), c)
		defer n.mustStop()
		synctest.Wait()
		if got := n.Stats().Snapshot.Slot; got != 101 {
			t.Fatalf("it goes on from a snapshot of slot %d", got)
		}
		asked := n.ask(ledger.Query{}, k)
		pending(t, asked)
		u.at(101, lamports(k, 0))
		if r := <-asked; !errors.Is(r.err, ledger.ErrNotFound) {
			t.Errorf("%d lamports, err %v", r.account.Lamports, r.err)
		}
	})
}

// TestAccountClosedMeanwhileIsNotLearned closes an account that is not held, which leaves no trace,
// before or after the node was asked as of an earlier slot.
func TestAccountClosedMeanwhileIsNotLearned(t *testing.T) {
	for _, name := range []string{"before", "after"} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				k, other, root := key(1), key(2), rootBlock(100)
				u := newFakeNode(100, lamports(k, 5), lamports(other, 6))
				n := filling(t, u, Config{})
				defer n.mustStop()
				closes := child(root, 101, 0, lamports(k, 0))
				if name == "before" {
					n.send(closes)
					n.mustAnswer(ledger.Query{}, k, 0)
				} else {
					u.gate = make(chan struct{})
					c := n.ask(ledger.Query{}, k)
					n.send(closes)
					pending(t, c)
					close(u.gate)
					if r := <-c; !errors.Is(r.err, ledger.ErrNotFound) {
						t.Errorf("%d lamports, err %v", r.account.Lamports, r.err)
					}
				}
				n.mustAnswer(ledger.Query{}, other, 6)
				// On another branch it was never closed.
				n.send(child(root, 102, 1))
				n.mustAnswer(ledger.Query{}, k, 5)
			})
		})
	}
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
		asked := u.questions()
		for range 9 {
			_, _, err := n.Account(ledger.Query{}, out)
			if why, ok := absence(err); !ok || why.Absence != ledger.AccountNotIndexed {
				t.Fatalf("%v, want not indexed", err)
			}
			time.Sleep(time.Second)
		}
		if got := u.questions() - asked; got != 1 {
			t.Errorf("the node was asked %d times for an account that is kept out", got)
		}
		b101 := child(rootBlock(100), 101, 0, owned(out, 8, program), lamports(in, 9))
		n.send(b101)
		n.mustAnswer(ledger.Query{}, out, 8) // it came to be wanted
		n.mustAnswer(ledger.Query{}, in, 9)  // once held, followed
		n.mustAnswer(ledger.Query{}, key(4), 0)
	})
}

// TestAccountWrittenMeanwhileIsTheBlocks has a block write an account that is being asked for.
func TestAccountWrittenMeanwhileIsTheBlocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, root := key(1), rootBlock(100)
		u := newFakeNode(100, lamports(k, 5))
		u.gate = make(chan struct{})
		n := filling(t, u, Config{})
		defer n.mustStop()
		c := n.ask(ledger.Query{}, k)
		pending(t, c)
		b101 := child(root, 101, 0, lamports(k, 6))
		n.send(b101)
		if r := <-c; r.err != nil || r.account.Lamports != 6 {
			t.Errorf("%d lamports, %v: the block's word is there at once", r.account.Lamports, r.err)
		}
		close(u.gate)
		synctest.Wait()
		for _, r := range n.records() {
			if r.Kind == ledger.BaseRecord {
				t.Errorf("learned %+v of before the block", r.Base)
			}
		}
		if s := n.Stats().Fill; s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		n.mustAnswer(ledger.Query{}, k, 6)
	})
}

// TestWantsThatNobodyCanServeEnd has a node that answers as of a slot too old, without end.
func TestWantsThatNobodyCanServeEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(50, lamports(key(1), 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		if r := <-n.ask(ledger.Query{}, key(1)); !errors.Is(r.err, ledger.ErrFetching) {
			t.Errorf("%v", r.err)
		}
		time.Sleep(fill.GiveUpAfter)
		if s := n.Stats().Fill; s.Waiting != 0 || s.Fetches > uint64(fill.GiveUpAfter/fill.AgainAfter)+1 {
			t.Errorf("%+v, want that it was given up, and no storm", s)
		}
	})
}

func TestLevelsHaveToGetThere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, missing, root := key(1), key(2), rootBlock(100)
		u := newFakeNode(100, lamports(k, 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		b101 := child(root, 101, 0, lamports(missing, 0))
		b102 := child(b101, 102, 0)
		n.send(b101, status(b101, ledger.StatusConfirmed))
		c := n.ask(at(ledger.Confirmed), k)
		n.mustAnswer(ledger.Query{}, k, 5)
		pending(t, c) // it stands above block 101 here
		if r := <-n.ask(at(ledger.Finalized), k); !errors.Is(r.err, ledger.ErrFetching) || r.view.Tip().Slot != 100 {
			t.Errorf("at finalized: %v at slot %d", r.err, r.view.Tip().Slot)
		}
		<-c
		n.send(b102)
		c = n.ask(at(ledger.Confirmed), k)
		pending(t, c)
		n.send(status(b102, ledger.StatusConfirmed))
		if r := <-c; r.err != nil || r.view.Tip().Slot != 102 || r.account.Lamports != 5 {
			t.Errorf("at confirmed: %d lamports at slot %d, err %v", r.account.Lamports, r.view.Tip().Slot, r.err)
		}
		if u.questions() != 1 {
			t.Errorf("the node was asked %d times", u.questions())
		}
		// What a block closed is missing since that: not yet at levels below. What the node never had is missing at all.
		n.mustAnswer(at(ledger.Finalized), key(3), 0)
		u.at(100, lamports(missing, 9))
		n.mustAnswer(ledger.Query{}, missing, 0)
		if r := <-n.ask(at(ledger.Finalized), missing); !errors.Is(r.err, ledger.ErrFetching) {
			t.Errorf("missing at finalized: %v", r.err)
		}
		n.send(status(b102, ledger.StatusFinalized))
		n.mustAnswer(ledger.Query{}, missing, 0)
		n.mustAnswer(at(ledger.Finalized), missing, 0)
		n.mustAnswer(at(ledger.Finalized), k, 5)
	})
}

// TestFetchedAccountsOutliveTheProcessAndRollbacks holds what was answered once against power cuts, and then undoes all blocks that are
// not final, above the slot of the answers.
func TestFetchedAccountsOutliveTheProcessAndRollbacks(t *testing.T) {
	for name, stop := range map[string]func(*subject, *vfstest.Memory) *vfstest.Memory{
		"clean stop": func(n *subject, disk *vfstest.Memory) *vfstest.Memory {
			n.mustStop()
			return disk.Crash(1, 1)
		},
		"power cut": func(n *subject, disk *vfstest.Memory) *vfstest.Memory {
			cut := disk.Crash(0, 1)
			n.mustStop()
			return cut
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				k, early, written, root := key(1), key(2), key(3), rootBlock(100)
				b101, b102 := child(root, 101, 0), child(root, 102, 1)
				u := newFakeNode(100, lamports(early, 7), lamports(k, 5), lamports(written, 6))
				disk := vfstest.NewMemory()
				n := filling(t, u, onDisk(t, disk, Config{}))
				n.mustAnswer(ledger.Query{}, early, 7)
				b101.Accounts = []ledger.AccountWrite{lamports(written, 60)}
				n.send(b101, status(b101, ledger.StatusConfirmed))
				n.mustAnswer(ledger.Query{}, k, 5)
				hash := n.Head().StateHash
				disk = stop(n, disk)

				u.fails(&ledger.UpstreamError{})
				c := onDisk(t, disk, Config{Shards: 3})
				c.Fetcher = u
				n = startNode(t, partial(), c)
				defer n.mustStop()
				synctest.Wait()
				if got := n.Head().StateHash; got != hash {
					t.Errorf("state hash %s after the restart, want %s", got, hash)
				}
				n.mustAnswer(ledger.Query{}, k, 5)
				n.mustAnswer(ledger.Query{}, early, 7)
				n.mustAnswer(ledger.Query{}, written, 60)
				asked := u.questions()
				n.send(b102, status(b102, ledger.StatusConfirmed))
				if got := n.Head().Tip(ledger.Processed).Hash; got != b102.Blockhash {
					t.Fatal("the chain did not move over")
				}
				n.mustAnswer(ledger.Query{}, k, 5)
				n.mustAnswer(ledger.Query{}, early, 7)
				if u.questions() != asked {
					t.Error("what is final was asked for again")
				}
				u.fails(nil)
				n.mustAnswer(ledger.Query{}, written, 6) // nobody had fetched it
			})
		})
	}
}
