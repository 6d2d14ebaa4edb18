package shard

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// TestFullMailboxRefusesAtOnce fills the queries' lane of a shard that answers nobody: the next
// asker is refused without waiting, those in it at their deadline.
func TestFullMailboxRefusesAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := New(0, 1)
		began := time.Now()
		var askers sync.WaitGroup
		for range queryLane {
			askers.Go(func() {
				_, err := s.Accounts(nil, 0, began.Add(2*time.Second))
				if !errors.Is(err, ledger.ErrUnavailable) || time.Since(began) != 2*time.Second {
					t.Errorf("an asker that waits: %v after %v, want unavailable after 2s", err, time.Since(began))
				}
			})
		}
		synctest.Wait()
		if s.MailboxDepth() != queryLane {
			t.Errorf("%d queries wait, want %d", s.MailboxDepth(), queryLane)
		}
		if _, _, err := s.Account(key(1), 0, began.Add(2*time.Second)); !errors.Is(err, ledger.ErrUnavailable) || time.Since(began) != 0 {
			t.Errorf("one asker too many: %v after %v, want unavailable at once", err, time.Since(began))
		}
		askers.Wait()
	})
}

func TestStoppedShardAnswersNobody(t *testing.T) {
	s := New(0, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Account(key(1), 0, soon()); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("Account: %v, want unavailable", err)
	}
	for range workLane + 2 { // more than fit into the lane: nobody may wait for room
		if _, err := s.ApplyBase(1, &ledger.BaseState{}, true).Wait(); err == nil {
			t.Error("work was done by a shard that stopped")
		}
		s.Fold(1, 0)
	}
}

// TestPanicBreaksTheShard gives it base state to learn below a block: Run tells which shard and why, and
// whoever waits gets an error.
func TestPanicBreaksTheShard(t *testing.T) {
	s := New(0, 1)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	s.ApplyBlock(1, &ledger.Block{Accounts: []ledger.AccountWrite{lamports(key(1), 1)}})
	if _, err := s.ApplyBase(2, &ledger.BaseState{}, true).Wait(); err == nil {
		t.Error("the work that broke the shard was done")
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "shard 0 broke") {
		t.Errorf("Run: %v, want that shard 0 broke", err)
	}
}

// gateJob is a long job that waits before each slice until a test lets it go on.
type gateJob struct {
	slices  int
	stepped chan struct{}
	gate    chan struct{}
}

func (j *gateJob) step(*state) bool {
	j.stepped <- struct{}{}
	<-j.gate
	j.slices--
	return j.slices > 0
}

// TestQueriesAreServedBetweenSlices asks while a long job is at work.
func TestQueriesAreServedBetweenSlices(t *testing.T) {
	s := start(t)
	applyBlock(t, s, 1, lamports(key(1), 5))
	j := &gateJob{slices: 3, stepped: make(chan struct{}), gate: make(chan struct{})}
	task := send(s, j, new(outcome[Applied]))
	answered := make(chan error, 1)
	for range 2 {
		<-j.stepped // the job is in a slice
		go func() {
			_, _, err := s.Account(key(1), 1, soon())
			answered <- err
		}()
		for s.MailboxDepth() == 0 { // until the question waits in the lane
			runtime.Gosched()
		}
		j.gate <- struct{}{}
		if err := <-answered; err != nil {
			t.Errorf("asked between slices: %v", err)
		}
	}
	<-j.stepped
	j.gate <- struct{}{}
	wait(t, task)
}

// TestLargeBlockIsDoneInSlices checks that no slice of a large block, its undoing or its fold
// handles more keys than a slice may. The fold meets two versions of each.
func TestLargeBlockIsDoneInSlices(t *testing.T) {
	const keys = 10*sliceKeys + 7
	s := newState(0, 1)
	b := &ledger.Block{Slot: 1}
	for i := range keys {
		b.Accounts = append(b.Accounts, lamports(key(i), 1))
	}
	steps := func(j job) int {
		n := 1
		for before := s.accounts.overlay.Len(); j.step(s); n++ {
			if now := s.accounts.overlay.Len(); now-before > sliceKeys || before-now > 2*sliceKeys {
				t.Fatalf("%T: one slice changed %d accounts", j, now-before)
			} else {
				before = now
			}
		}
		return n
	}
	block := &apply{version: 1, provenance: ledger.BlockProvenance(1), writes: b.Accounts}
	if n := steps(block); n < 10 {
		t.Errorf("a block took %d slices for %d accounts", n, keys)
	}
	if n := steps(&rollback{version: 2, first: 1}); n < 10 {
		t.Errorf("a rollback took %d slices for %d accounts", n, keys)
	}
	if n := steps(&fold{to: 2}); n < 10 {
		t.Errorf("a fold took %d slices for %d accounts", n, keys)
	}
	if s.hash != (ledger.StateHash{}) || s.accounts.base.Len() != 0 {
		t.Errorf("state hash %s and %d accounts after all was undone", s.hash, s.accounts.base.Len())
	}
}

// TestListsAreWholeBetweenSlicesOfAFold folds two versions of each account, the first of which is skipped.
func TestListsAreWholeBetweenSlicesOfAFold(t *testing.T) {
	const keys = 2 * sliceKeys
	s := newState(0, 1)
	for v := ledger.Version(1); v <= 2; v++ {
		j := &apply{version: v, provenance: ledger.BlockProvenance(ledger.Slot(v))}
		for i := range keys {
			j.writes = append(j.writes, lamports(key(i), ledger.Lamports(v)))
		}
		for j.step(s) {
		}
	}
	for j, slice := (&fold{to: 2}), 1; j.step(s); slice++ {
		for _, g := range []group{{}, {kind: ofProgram}} {
			page := s.accounts.page(g, ledger.Opt[ledger.Pubkey]{}, keys, 2, nil)
			if len(page.Accounts) != keys {
				t.Errorf("after slice %d: %d accounts of %v, want %d", slice, len(page.Accounts), g, keys)
			}
		}
	}
}

// TestAccountAllocatesNothing measures the question asked most, where the shard is idle.
func TestAccountAllocatesNothing(t *testing.T) {
	s := start(t)
	token := owned(key(4), 4, ledger.TokenProgram)
	token.Known |= ledger.FieldToken
	token.Token = &ledger.TokenAccount{Mint: key(5), Owner: key(6), Amount: 7}
	applyBlock(t, s, 1, lamports(key(1), 1), lamports(key(2), 2), token)
	s.Fold(1, 0)
	applyBlock(t, s, 2, lamports(key(2), 3))
	deadline := soon()
	hundred := func(ask func()) float64 { // for who takes memory for several at once
		return testing.AllocsPerRun(20, func() {
			for range 100 {
				ask()
			}
		})
	}
	for n, k := range []ledger.Pubkey{key(1), key(2), key(3), key(4)} {
		if got := hundred(func() { s.Account(k, 2, deadline) }); got != 0 {
			t.Errorf("account %d: %v allocations for a hundred, want 0", n, got)
		}
	}
}

// TestAskersOfAShardThatEndsAreTold lets questions for an account wait in the lane of a shard
// that ends without looking at them: nobody waits for the deadline.
func TestAskersOfAShardThatEndsAreTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := New(0, 1)
		began := time.Now()
		var askers sync.WaitGroup
		for n := range 100 {
			askers.Go(func() {
				if _, _, err := s.Account(key(n), 0, began.Add(2*time.Second)); !errors.Is(err, errStopped) || time.Since(began) != 0 {
					t.Errorf("asker %d: %v after %v, want that the shard stopped, at once", n, err, time.Since(began))
				}
			})
		}
		synctest.Wait()
		close(s.done) // as Run does when it ends
		askers.Wait()
	})
}

// TestAskersRacingWithTheEndAreTold asks all the while a shard ends: whoever comes just then is
// told by Run or sees the end, and never waits for the deadline.
func TestAskersRacingWithTheEndAreTold(t *testing.T) {
	for range 200 {
		bubble.Test(t, func(t *testing.T) {
			s := New(0, 1)
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for {
						if _, _, err := s.Account(key(1), 0, began.Add(time.Hour)); err != nil {
							return
						}
					}
				})
			}
			all.Go(func() {
				if err := s.Run(ctx); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
			cancel()
			all.Wait()
			if waited := time.Since(began); waited != 0 {
				t.Fatalf("somebody waited %v", waited)
			}
		})
	}
}

// TestQuestionEndsAtItsDeadline asks while the shard is at work: the asker is told at its own deadline, and
// the next question is answered.
func TestQuestionEndsAtItsDeadline(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := start(t)
		j := &gateJob{slices: 1, stepped: make(chan struct{}), gate: make(chan struct{})}
		task := send(s, j, new(outcome[Applied]))
		<-j.stepped // no question is answered from here on
		for _, wait := range []time.Duration{2 * time.Second, 300 * time.Millisecond} {
			began := time.Now()
			if _, _, err := s.Account(key(1), 0, began.Add(wait)); !errors.Is(err, errLate) || time.Since(began) != wait {
				t.Errorf("%v after %v, want overdue after %v", err, time.Since(began), wait)
			}
		}
		j.gate <- struct{}{}
		wait(t, task)
		if _, _, err := s.askAccount(key(1), 0, time.Now().Add(time.Second)); err != nil {
			t.Errorf("the next question: %v", err)
		}
	})
}
