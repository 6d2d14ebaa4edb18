package shard

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard/packed"
)

// gateJob is a long job that waits before each slice until a test lets it go on.
type gateJob struct {
	reply[Applied]
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

// occupy has a shard at work on a long job, and returns when it is in the first slice.
func occupy(s *Shard, slices int) (*gateJob, *Task) {
	j := &gateJob{reply: newReply[Applied](s), slices: slices, stepped: make(chan struct{}), gate: make(chan struct{})}
	s.send(j)
	<-j.stepped
	return j, &j.reply
}

// TestFullMailboxRefusesAtOnce fills the queries' lane of a shard that answers nobody: the next
// caller is refused without waiting, those in it at their deadline.
func TestFullMailboxRefusesAtOnce(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := New(0, 1)
		began := time.Now()
		var callers sync.WaitGroup
		for range queryLane {
			callers.Go(func() {
				err := s.Accounts(nil, 0, began.Add(2*time.Second), nil)
				if !errors.Is(err, ledger.ErrUnavailable) || time.Since(began) != 2*time.Second {
					t.Errorf("a caller that waits: %v after %v, want unavailable after 2s", err, time.Since(began))
				}
			})
		}
		synctest.Wait()
		ledgertest.Equal(t, s.MailboxDepth(), queryLane, "queries that wait")
		if _, _, err := s.Account(key(1), 0, began.Add(2*time.Second)); !errors.Is(err, ledger.ErrUnavailable) || time.Since(began) != 0 {
			t.Errorf("one caller too many: %v after %v, want unavailable at once", err, time.Since(began))
		}
		callers.Wait()
	})
}

// TestNobodyWaitsForAShardThatEnds asks and sends work all the while a shard ends, and afterwards.
func TestNobodyWaitsForAShardThatEnds(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		for range 20 {
			s := New(0, 1)
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					var err error
					for err == nil {
						_, _, err = s.Account(key(1), 0, began.Add(time.Hour))
					}
					ledgertest.ErrorIs(t, err, ledger.ErrUnavailable, "Account")
				})
			}
			all.Go(func() {
				ledgertest.ErrorIs(t, s.Run(ctx), nil, "Run")
			})
			cancel()
			all.Wait()
			for range workLane + 2 { // more than fit into the lane: nobody may wait for room
				if _, err := s.ApplyBase(Point{Version: 1}, &ledger.BaseState{}, true).Wait(); err == nil {
					t.Error("work was done by a shard that stopped")
				}
				s.Fold(1, 0)
			}
			ledgertest.Equal(t, time.Since(began), 0, "how long somebody waited")
		}
	})
}

// TestPanicBreaksTheShard gives a shard base state to learn below a block, or has a caller read a state that is broken: Run tells
// which shard and why, and the caller gets an error.
func TestPanicBreaksTheShard(t *testing.T) {
	for name, breaks := range map[string]func(s *Shard) error{
		"work": func(s *Shard) error {
			s.ApplyBlock(Point{Version: 1}, &ledger.Block{Accounts: lamportsOf(10, 1)})
			_, err := s.ApplyBase(Point{Version: 2}, &ledger.BaseState{}, true).Wait()
			return err
		},
		"a look": func(s *Shard) error {
			s.state.accounts = nil
			s.mu.Unlock() // as if it ran
			if _, _, answered := s.TryAccount(key(1), 1); answered {
				t.Error("a look at a broken state was answered")
			}
			s.mu.Lock()
			_, _, err := s.Account(key(1), 1, time.Now().Add(time.Hour))
			return err
		},
	} {
		s := New(0, 1)
		broken := make(chan error)
		go func() { broken <- breaks(s) }()
		if name == "a look" {
			for s.MailboxDepth() == 0 { // the caller waits
				runtime.Gosched()
			}
		}
		ledgertest.ErrorSays(t, s.Run(t.Context()), "shard 0 broke", "%s: Run", name)
		if err := <-broken; err == nil {
			t.Errorf("%s: the caller got no error", name)
		}
	}
}

// TestQueriesAreServedBetweenSlices of a long job. Nobody reads in place in a slice, nor before or after the time of the shard.
func TestQueriesAreServedBetweenSlices(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		s := New(0, 1)
		k := key(1)
		look := func(when string, want bool) {
			t.Helper()
			if a, _, answered := s.TryAccount(k, 1); answered != want || answered && a.Lamports != 5 {
				t.Errorf("%s: %v, %v, want answered to be %v", when, a, answered, want)
			}
			// Who would have to wait is too late.
			all := make([]ledger.Account, 1)
			if err := s.Accounts([]ledger.Pubkey{k}, 1, time.Now(), all); err == nil != want || want && all[0].Lamports != 5 {
				t.Errorf("%s: %v, %v for a list, want it answered to be %v", when, all, err, want)
			}
		}
		look("before Run", false)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		applyBlock(t, s, 1, lamports(k, 5))
		synctest.Wait()
		s.mu.RLock()
		look("beside another look", true)
		s.mu.RUnlock()
		j, task := occupy(s, 3)
		answered := make(chan error, 1)
		for range 2 {
			look("during a slice", false)
			go func() {
				_, _, err := s.Account(k, 1, soon())
				answered <- err
			}()
			time.Sleep(time.Millisecond) // the slice takes time, and the question waits in the lane
			j.gate <- struct{}{}
			must(t, <-answered)
			<-j.stepped
		}
		j.gate <- struct{}{}
		wait(t, task)
		look("between jobs", true)
		cancel()
		must(t, <-ended)
		look("after Run", false)
	})
}

// TestQueriesTakeNoMoreTimeThanTheWork has a thousand lists wait for a shard at work. After each slice they get half as long as the
// slice took. Where one takes longer than that, the next slices make up for it: one is answered after five. All are answered in the end.
func TestQueriesTakeNoMoreTimeThanTheWork(t *testing.T) {
	const waiting, list = 1000, 10 * time.Microsecond
	for name, tt := range map[string]struct{ slice, want time.Duration }{ // want is of one slice and its queries
		"a usual slice": {200 * time.Microsecond, 300 * time.Microsecond},
		"a long slice":  {5 * time.Millisecond, 6 * time.Millisecond},
		"a short slice": {4 * time.Microsecond, 6500 * time.Nanosecond},
	} {
		bubbletest.Test(t, func(t *testing.T) {
			const slices = 5
			s := start(t)
			j, task := occupy(s, slices)
			var all sync.WaitGroup
			for range waiting {
				all.Go(func() {
					_, err := queryAt(s, 0, time.Now().Add(time.Hour), func(*state) (none struct{}) {
						time.Sleep(list)
						return none
					})
					ledgertest.ErrorIs(t, err, nil, "a list")
				})
			}
			synctest.Wait()
			began := time.Now()
			for n := range slices {
				time.Sleep(tt.slice)
				j.gate <- struct{}{}
				if n < slices-1 {
					<-j.stepped
				}
			}
			wait(t, task)
			ledgertest.Equal(t, time.Since(began), tt.slice+(slices-1)*tt.want, "%s: the time of %d slices", name, slices)
			all.Wait()
		})
	}
}

// TestLargeBlockIsDoneInSlices checks that no slice of a large block, its undoing or its fold handles more keys than a slice may,
// that no version changes between two slices, and that lists are whole between those of a fold. Each fold meets two versions of each
// key.
func TestLargeBlockIsDoneInSlices(t *testing.T) {
	const slice = 128 // keys: some hundred microseconds
	const keys = 10*slice + 7
	shard := New(0, 1)
	s := shard.state
	write := func(v ledger.Version) message { return shard.block(v, lamportsOf(keys, ledger.Lamports(v))) }
	versions := []ledger.Version{0, 1, 2, 2, 3, 4} // the newest before each job
	for n, j := range []message{write(1), &rollback{Point: Point{Version: 2}, first: 1}, &fold{Point: Point{Version: 2}}, write(3), write(4), &fold{Point: Point{Version: 4}}} {
		steps, held := 1, map[ledger.Version]ledger.Lamports{1: 1, 3: 3, 4: 4}[versions[n]]
		for before := s.accounts.overlay.Len(); j.step(s); steps++ {
			now := s.accounts.overlay.Len()
			ledgertest.MustHold(t, now-before <= slice && before-now <= 2*slice, "%T: one slice changed %d accounts", j, now-before)
			before = now
			for k := range keys {
				var a ledger.Account
				if s.accounts.readShallow(new(key(k)), versions[n], &a); a.Lamports != held {
					t.Fatalf("%T, after slice %d: %+v at version %d, want %d lamports", j, steps, a, versions[n], held)
				}
			}
			page := s.accounts.page(packed.Group{Kind: packed.ByProgram}, nil, ledger.Opt[ledger.Pubkey]{}, pageKeys, 4, nil)
			if n == 5 && len(page.Accounts) != pageKeys {
				t.Errorf("after slice %d: %d accounts, want %d", steps, len(page.Accounts), pageKeys)
			}
		}
		ledgertest.Holds(t, steps >= 10, "%T took %d slices for %d accounts", j, steps, keys)
		if n == 2 && (s.hash != (ledger.StateHash{}) || s.accounts.base.Len() != 0) {
			t.Errorf("state hash %s and %d accounts after all was undone", s.hash, s.accounts.base.Len())
		}
	}
}

// TestALookAllocatesNothing measures the question asked most, where the shard is idle.
func TestALookAllocatesNothing(t *testing.T) {
	s := start(t)
	token := owned(key(4), 4, ledger.TokenProgram)
	token.Known |= ledger.FieldToken
	token.Token = &ledger.TokenAccount{Mint: key(5), Owner: key(6), Amount: 7}
	applyBlock(t, s, 1, lamports(key(1), 1), lamports(key(2), 2), token)
	s.Fold(1, 0)
	applyBlock(t, s, 2, lamports(key(2), 3))
	for n := range 4 {
		k := key(n + 1)
		if got := testing.AllocsPerRun(20, func() {
			for range 100 { // for who takes memory for several at once
				s.TryAccount(k, 2)
			}
		}); got != 0 {
			t.Errorf("account %d: %v allocations for a hundred, want 0", n+1, got)
		}
	}
}

// G23: a caller that gives up on a list, or never goes on with the walk of a copy, blocks no writer, and the copy stays as it was.
func TestReadersNeverBlockAWriter(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		const keys = 1000
		s := start(t)
		applyBlock(t, s, 1, lamportsOf(keys, 1)...)
		s.Fold(1, 0)
		frozen := wait(t, s.Freeze(1))
		walking := make(chan struct{})
		visited := 0
		var walker sync.WaitGroup
		walker.Go(func() {
			frozen.Accounts(func(a *ledger.Account) bool {
				walking <- struct{}{}
				visited++
				return a.Lamports == 1
			})
		})
		<-walking // the walk stands from here on
		j, task := occupy(s, 1)
		for _, wait := range []time.Duration{2 * time.Second, 300 * time.Millisecond} {
			began := time.Now()
			_, err := s.List(Members{}, ledger.Opt[ledger.Pubkey]{}, 10, 1, began.Add(wait), nil)
			if !errors.Is(err, errLate) || time.Since(began) != wait {
				t.Errorf("%v after %v, want overdue after %v", err, time.Since(began), wait)
			}
		}
		j.gate <- struct{}{}
		wait(t, task)
		for v := ledger.Version(2); v < 5; v++ {
			applyBlock(t, s, v, lamportsOf(keys, ledger.Lamports(v))...)
			s.Fold(v, 0)
		}
		if _, _, err := s.Account(key(1), 4, time.Now().Add(time.Second)); err != nil {
			t.Errorf("the next question: %v", err)
		}
		for range keys - 1 {
			<-walking
		}
		walker.Wait()
		frozen.Release()
		ledgertest.Equal(t, *frozen, Frozen{version: 1}, "what a released copy still refers to: no tree")
		ledgertest.Equal(t, visited, keys, "accounts of the copy that were as they were")
	})
}
