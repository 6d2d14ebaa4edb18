package engine

import (
	"errors"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/chain"
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
		n.send(status(b102, ledger.StatusConfirmed))
		pending(t, c)
		n.send(status(b103, ledger.StatusConfirmed))
		if r := <-c; r.err != nil || r.view.Tip().Slot != 103 {
			t.Errorf("answered at slot %d, err %v", r.view.Tip().Slot, r.err)
		}
		if u.questions() != 1 {
			t.Errorf("the node was asked %d times", u.questions())
		}
	})
}

// TestAnswerIsHeldAgainstTheChainAsTheSequencerHasIt, which may be another one than what is visible.
func TestAnswerIsHeldAgainstTheChainAsTheSequencerHasIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := key(1)
		n := filling(t, newFakeNode(100), Config{})
		n.mustStop() // now the sequencer is nobody's
		f := n.fill
		f.stopped = false
		for slot, expect := range map[ledger.Slot]struct{ returned, later int }{101: {1, 0}, 99: {0, 1}} {
			f.returned, f.later = nil, nil
			f.wants[k] = &want{done: make(chan struct{})}
			records := n.seq.version
			if err := n.learn(&fetched{keys: []ledger.Pubkey{k}, base: &ledger.BaseState{Slot: slot, Accounts: []ledger.AccountWrite{lamports(k, 5)}}}); err != nil {
				t.Fatal(err)
			}
			if len(f.returned) != expect.returned || len(f.later) != expect.later || n.seq.version != records {
				t.Errorf("as of slot %d: %d given back, %d asked again, record %d", slot, len(f.returned), len(f.later), n.seq.version)
			}
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
		time.Sleep(holdFor)
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

func TestTouchesAreBoundedAndSayHowFarTheyReach(t *testing.T) {
	l := &fillLedger{filler: newFiller(nil, nil)}
	root := &chain.Node{Block: rootBlock(100)}
	l.appended(root)
	closed := func(slot ledger.Slot) ledger.Pubkey { return key(2 * int(slot)) }
	kept := func(slot ledger.Slot) ledger.Pubkey { return key(2*int(slot) + 1) }
	block := func(slot ledger.Slot, more int) {
		b := &ledger.Block{Slot: slot, Accounts: []ledger.AccountWrite{lamports(closed(slot), 0), lamports(kept(slot), 1)}}
		b.Accounts = append(b.Accounts, make([]ledger.AccountWrite, more)...)
		l.appended(&chain.Node{Block: b, Parent: root})
	}
	const last = ledger.Slot(100 + 3*maxTouchBlocks)
	l.filler.unwanted(kept(last))
	l.filler.unwanted(closed(last))
	for slot := ledger.Slot(101); slot <= last; slot++ {
		block(slot, 0)
	}
	if len(l.touches) != maxTouchBlocks || l.touched != 2*maxTouchBlocks || l.horizon != last-maxTouchBlocks {
		t.Errorf("%d blocks, %d keys, from slot %d", len(l.touches), l.touched, l.horizon)
	}
	if _, known := l.filler.remembered(kept(last)); known {
		t.Error("a key that a block wrote is remembered as not held")
	}
	if _, known := l.filler.remembered(closed(last)); !known {
		t.Error("a key that a block closed is forgotten")
	}
	asked := []ledger.Pubkey{closed(last), kept(last), kept(last - 1), key(0)}
	if _, known := l.after(l.horizon-1, asked); known {
		t.Error("what was written before the horizon is said to be known")
	}
	want := map[ledger.Pubkey]lastWrite{closed(last): {last, true}, kept(last): {last, false}}
	if written, known := l.after(last-1, asked); !known || !maps.Equal(written, want) {
		t.Errorf("written since: %v, %v, want %v", written, known, want)
	}
	want[kept(last-1)] = lastWrite{last - 1, false}
	if written, known := l.after(l.horizon, asked); !known || !maps.Equal(written, want) {
		t.Errorf("written since the horizon: %v, %v, want %v", written, known, want)
	}
	l.rolledBack(last - 1)
	if written, known := l.after(last-1, asked); !known || len(written) != 0 {
		t.Errorf("written in a block that was undone: %v, %v", written, known)
	}
	block(last, maxTouches)
	if _, known := l.after(last-1, asked); known || l.touched != 0 || l.horizon != last {
		t.Errorf("a block that wrote too much is said to be known: %d keys, from slot %d", l.touched, l.horizon)
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
		n.send(status(b101, ledger.StatusConfirmed))
		u.at(101, lamports(k, 6))
		time.Sleep(time.Second)
		if s := n.Stats().Fill; s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		n.mustAnswer(ledger.Query{}, k, 6)
	})
}

func TestLevelsHaveToGetThere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, missing, root := key(1), key(2), rootBlock(100)
		u := newFakeNode(101, lamports(k, 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		b101 := child(root, 101, 0)
		b102 := child(b101, 102, 0)
		b103 := child(b102, 103, 0)
		n.send(b101, b102, status(b101, ledger.StatusConfirmed))
		c := n.ask(at(ledger.Confirmed), k)
		n.mustAnswer(ledger.Query{}, k, 5)
		pending(t, c) // it stands above block 102 here, which is not confirmed
		if r := <-n.ask(at(ledger.Finalized), k); !errors.Is(r.err, ledger.ErrFetching) || r.view.Tip().Slot != 100 {
			t.Errorf("at finalized: %v at slot %d", r.err, r.view.Tip().Slot)
		}
		<-c
		n.send(b103)
		c = n.ask(at(ledger.Confirmed), k)
		pending(t, c)
		n.send(status(b103, ledger.StatusConfirmed))
		if r := <-c; r.err != nil || r.view.Tip().Slot != 103 || r.account.Lamports != 5 {
			t.Errorf("at confirmed: %d lamports at slot %d, err %v", r.account.Lamports, r.view.Tip().Slot, r.err)
		}
		if u.questions() != 1 {
			t.Errorf("the node was asked %d times", u.questions())
		}
		// What is missing is missing as of a slot: not yet at levels below.
		n.mustAnswer(ledger.Query{}, missing, 0)
		if r := <-n.ask(at(ledger.Finalized), missing); !errors.Is(r.err, ledger.ErrFetching) {
			t.Errorf("missing at finalized: %v", r.err)
		}
		n.send(status(b103, ledger.StatusFinalized))
		n.mustAnswer(ledger.Query{}, missing, 0)
		n.mustAnswer(at(ledger.Finalized), missing, 0)
		n.mustAnswer(at(ledger.Finalized), k, 5)
	})
}

// TestRollbackBelowTheSlotOfAnAnswerAsksAgain orphans a confirmed block, which an answer of the node
// was as of.
func TestRollbackBelowTheSlotOfAnAnswerAsksAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		changed, same, gone, settled, root := key(1), key(2), key(3), key(4), rootBlock(100)
		u := newFakeNode(100, lamports(changed, 5), lamports(same, 6), lamports(gone, 7), lamports(settled, 8))
		n := filling(t, u, Config{})
		defer n.mustStop()
		n.mustAnswer(ledger.Query{}, settled, 8) // as of the root, which stays
		n.mustAnswer(ledger.Query{}, key(9), 0)
		b101 := child(root, 101, 0)
		n.send(b101, status(b101, ledger.StatusConfirmed))
		u.at(101, lamports(key(8), 1))
		for k, want := range map[ledger.Pubkey]ledger.Lamports{changed: 5, same: 6, gone: 7, key(8): 1} {
			n.mustAnswer(ledger.Query{}, k, want)
		}
		asked := u.questions()
		u.fails(&ledger.UpstreamError{})
		b102 := child(root, 102, 1)
		n.send(b102, status(b102, ledger.StatusConfirmed))
		if got := n.Head().Tip(ledger.Processed).Hash; got != b102.Blockhash {
			t.Fatal("the chain did not move over")
		}
		u.at(102, lamports(changed, 50), lamports(gone, 0), lamports(key(8), 0))
		time.Sleep(3 * time.Second)
		n.mustAnswer(ledger.Query{}, changed, 5) // nothing better is known
		u.fails(nil)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for k, want := range map[ledger.Pubkey]ledger.Lamports{changed: 50, same: 6, settled: 8} {
			n.mustAnswer(ledger.Query{}, k, want)
		}
		for _, k := range []ledger.Pubkey{gone, key(8)} {
			if _, _, err := n.Account(ledger.Query{}, k); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("what the node has no more: %v", err)
			}
		}
		for _, keys := range u.asked[asked:] {
			for _, k := range keys {
				if k == settled {
					t.Error("what was learned as of a block that stays was asked for again")
				}
			}
		}
		if s := n.Stats().Fill; s.Doubted != 4 || s.Waiting != 0 {
			t.Errorf("%+v, want four in doubt, none waiting", s)
		}
		u.at(102, lamports(key(9), 3))
		n.mustAnswer(ledger.Query{}, key(9), 3) // that it was missing was forgotten with the branch
	})
}

// TestDoubtOutlivesAQuestionUnderWay has the rollback come while the node is being asked.
func TestDoubtOutlivesAQuestionUnderWay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k, root := key(1), rootBlock(100)
		u := newFakeNode(101, owned(k, 5, key(9)))
		n := filling(t, u, Config{})
		defer n.mustStop()
		b101, b102 := child(root, 101, 0), child(root, 102, 1)
		n.send(b101, status(b101, ledger.StatusConfirmed))
		n.mustAnswer(ledger.Query{}, k, 5)
		u.gate = make(chan struct{})
		n.send(b102, status(b102, ledger.StatusConfirmed)) // now k is in doubt and asked for
		u.at(100)                                          // a node behind: no answer
		close(u.gate)
		time.Sleep(3 * time.Second)
		if s := n.Stats().Fill; s.Waiting != 1 || s.Stale == 0 {
			t.Errorf("%+v, want that it is still in doubt", s)
		}
		u.at(102, lamports(k, 50))
		time.Sleep(3 * time.Second)
		n.mustAnswer(ledger.Query{}, k, 50)
	})
}

// TestFetchedAccountsOutliveTheProcess holds what was answered once against power cuts, and then
// rolls back below the slot of an answer that only the process before fetched.
func TestFetchedAccountsOutliveTheProcess(t *testing.T) {
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
				k, early, root := key(1), key(2), rootBlock(100)
				b101, b102 := child(root, 101, 0), child(root, 102, 1)
				u := newFakeNode(100, lamports(early, 7), lamports(k, 5))
				disk := vfstest.NewMemory()
				n := filling(t, u, onDisk(t, disk, Config{}))
				n.mustAnswer(ledger.Query{}, early, 7)
				n.send(b101, status(b101, ledger.StatusConfirmed))
				u.at(101)
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
				u.fails(nil)
				u.at(102, lamports(k, 50))
				n.send(b102, status(b102, ledger.StatusConfirmed))
				time.Sleep(3 * time.Second)
				n.mustAnswer(ledger.Query{}, k, 50)
				n.mustAnswer(ledger.Query{}, early, 7)
				if s := n.Stats().Fill; s.Doubted != 1 {
					t.Errorf("%+v, want one in doubt", s)
				}
			})
		})
	}
}

// TestAnswerOfABlockThatWasUndoneIsAskedForAgain has the node answer as of a block that is undone while the answer is on
// its way, or that is never shown here.
func TestAnswerOfABlockThatWasUndoneIsAskedForAgain(t *testing.T) {
	for _, shown := range []bool{true, false} {
		for _, undone := range []ledger.Lamports{5, 0} {
			bubble.Test(t, func(t *testing.T) {
				k, root := key(1), rootBlock(100)
				u := newFakeNode(101, lamports(k, undone))
				u.gate = make(chan struct{})
				n := filling(t, u, Config{})
				defer n.mustStop()
				b101, b102 := child(root, 101, 0), child(root, 102, 1)
				if shown {
					n.send(b101, status(b101, ledger.StatusConfirmed))
				}
				asked := n.ask(ledger.Query{}, k)
				synctest.Wait()
				if shown {
					n.send(b102, status(b102, ledger.StatusConfirmed))
					synctest.Wait()
				}
				close(u.gate)
				if !shown {
					synctest.Wait()
					n.send(b102, status(b102, ledger.StatusConfirmed))
				}
				synctest.Wait()
				u.at(102, lamports(k, 4))
				if r := <-asked; r.err != nil || r.account.Lamports != 4 {
					t.Errorf("shown %v: %d lamports, err %v", shown, r.account.Lamports, r.err)
				}
				n.mustAnswer(ledger.Query{}, k, 4)
			})
		}
	}
}

// TestDoubtOutlivesWhatWasLearnedAndNotShown doubts a key between its record and the publication of that.
func TestDoubtOutlivesWhatWasLearnedAndNotShown(t *testing.T) {
	f := newFiller(nil, slog.New(slog.DiscardHandler))
	k := key(1)
	if _, err := f.want(k, 0, want{}); err != nil {
		t.Fatal(err)
	}
	if got := f.take(time.Now()); len(got) != 1 {
		t.Fatalf("%d keys to fetch", len(got))
	}
	f.settled([]ledger.Pubkey{k}, nil, 7)
	<-f.wake
	f.doubtLocked(settling{slot: 5, keys: []ledger.Pubkey{k}})
	if len(f.wake) != 1 {
		t.Error("nobody is told that the key is to be fetched again")
	}
	f.shown(7)
	if got := f.take(time.Now()); len(got) != 1 || got[0] != k {
		t.Errorf("to be fetched: %v", got)
	}
	f.settled([]ledger.Pubkey{k}, nil, 9)
	f.shown(9)
	if len(f.wants) != 0 {
		t.Error("what was learned again is still wanted")
	}
}

// TestDoubtThatCouldNotBeEndedIsComeBackTo ends a doubted want with an error, on another goroutine than the
// filler's.
func TestDoubtThatCouldNotBeEndedIsComeBackTo(t *testing.T) {
	f := newFiller(nil, slog.New(slog.DiscardHandler))
	k := key(1)
	f.doubtLocked(settling{slot: 5, keys: []ledger.Pubkey{k}})
	f.take(time.Now())
	<-f.wake
	f.end([]ledger.Pubkey{k}, errNothingLearned)
	if len(f.wake) != 1 || len(f.later) != 1 {
		t.Errorf("%d keys are for later, %d wake-ups", len(f.later), len(f.wake))
	}
}

// TestUnsettledAccountsAreBounded has a source tell more base state above the finalized block than is
// kept to be doubted.
func TestUnsettledAccountsAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		u := newFakeNode(100, lamports(key(1), 5))
		n := filling(t, u, Config{})
		defer n.mustStop()
		b101 := child(rootBlock(100), 101, 0)
		n.send(b101)
		made := 0
		for range 3 * maxUnsettled / 10_000 {
			base := &ledger.BaseState{Slot: 101}
			for range 10_000 {
				made++
				base.Accounts = append(base.Accounts, ledger.AccountWrite{Pubkey: key(made + 10)}) // of 0 lamports: nothing is held
			}
			n.send(base)
			if kept := n.fill.unsettled.Load(); kept > 2*maxUnsettled || made < maxUnsettled && kept != int64(made) {
				t.Fatalf("%d of %d keys are kept", kept, made)
			}
		}
		if r := <-n.ask(ledger.Query{}, key(1)); !errors.Is(r.err, ledger.ErrFetchBusy) {
			t.Errorf("%v, want busy", r.err)
		}
		n.send(status(b101, ledger.StatusFinalized))
		if kept := n.fill.unsettled.Load(); kept != 0 {
			t.Errorf("%d keys are kept after the block became final", kept)
		}
		u.at(101)
		n.mustAnswer(ledger.Query{}, key(1), 5)
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
		time.Sleep(holdFor)
		if s := n.Stats().Fill; s.Waiting != 0 || s.Fetches > uint64(holdFor/againAfter)+1 {
			t.Errorf("%+v, want that it was given up, and no storm", s)
		}
	})
}
