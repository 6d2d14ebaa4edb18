package shard

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/bubble"
)

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
		task := s.send(j, new(Applied))
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
