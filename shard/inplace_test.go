package shard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// TestLookingInPlaceTakesTurnsWithWork looks accounts up from several goroutines while blocks
// are applied, undone and folded: in place or enqueued, a version never changes.
func TestLookingInPlaceTakesTurnsWithWork(t *testing.T) {
	const keys, rounds = 2 * sliceKeys, 40
	s := start(t)
	block := func(v ledger.Version) {
		writes := make([]ledger.AccountWrite, keys)
		for i := range writes {
			writes[i] = lamports(key(i), ledger.Lamports(v))
		}
		applyBlock(t, s, v, writes...)
	}
	block(1)
	var newest atomic.Uint64
	newest.Store(1)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for r := range 3 {
		readers.Go(func() {
			for i := r; ctx.Err() == nil; i++ {
				v := ledger.Version(newest.Load())
				a, found, err := s.Account(key(i%keys), v, soon())
				if errors.Is(err, ErrFolded) && ledger.Version(newest.Load()) > v {
					continue
				}
				if err != nil || !found || a.Lamports != ledger.Lamports(v) {
					t.Errorf("version %d of account %d: %v, %v, %v", v, i%keys, a, found, err)
					return
				}
			}
		})
	}
	for round := range rounds {
		v := ledger.Version(3*round + 2)
		block(v)
		wait(t, s.Rollback(v+1, v))
		block(v + 2)
		newest.Store(uint64(v + 2))
		s.Fold(v+2, 0)
	}
	cancel()
	readers.Wait()
}

// TestNobodyLooksWhileTheShardWorks looks into a slice that is under way, and at a shard before
// and after its time.
func TestNobodyLooksWhileTheShardWorks(t *testing.T) {
	s := New(0, 1)
	var a ledger.Account
	look := func() error {
		k := key(1)
		_, err := s.look(&k, 1, &a)
		return err
	}
	if err := look(); err != errLocked {
		t.Errorf("before Run: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	applyBlock(t, s, 1, lamports(key(1), 5))
	j := &gateJob{slices: 1, stepped: make(chan struct{}), gate: make(chan struct{})}
	task := send(s, j, new(outcome[Applied]))
	<-j.stepped
	if err := look(); err != errLocked {
		t.Errorf("during a slice: %v", err)
	}
	j.gate <- struct{}{}
	wait(t, task)
	if err := look(); err != nil || a.Lamports != 5 {
		t.Errorf("between jobs: %v, %v", a, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := look(); err != errLocked {
		t.Errorf("after Run: %v", err)
	}
}

// TestPanicOfALookBreaksTheShard looks at a state that is broken: the asker is refused, and Run
// ends with the reason.
func TestPanicOfALookBreaksTheShard(t *testing.T) {
	s := New(3, 5)
	s.state.accounts = nil
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	if _, _, err := s.Account(key(1), 1, time.Now().Add(time.Millisecond)); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("Account: %v, want unavailable", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "shard 3 broke") {
		t.Errorf("Run: %v, want that shard 3 broke", err)
	}
}
