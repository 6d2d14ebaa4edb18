package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	clientlib "ledgerd/httpd/client"
)

// seen is what clients were shown: one that follows the stream of all nodes of a directory, from number 0 on, and one that asks for blocks.
// Whatever ends the node, all of it must be there afterwards.
type seen struct {
	testing.TB
	*clientFold
	leave  func(cut bool) // ends the following
	nodeID string
	tips   [3]seenBlock         // by level: the newest block that REST answered
	blocks map[uint64]seenLevel // by slot: those that were called confirmed or finalized
}

// seenLevel is the hash of a block and the highest level at which it was seen.
type seenLevel struct {
	hash  string
	level int
}

// seenBlock names a block. The zero value says that none was seen.
type seenBlock struct {
	slot uint64
	hash string
}

func newSeen(t testing.TB) *seen {
	f := newFold("everything", clientlib.Subscription{Commitment: clientlib.Processed})
	f.Starts, f.Accounts, f.news = 1, map[string]string{}, make(chan struct{}, 1)
	return &seen{TB: t, clientFold: f, blocks: map[uint64]seenLevel{}}
}

// begin follows a node until leave is called, behind the number that the client was told last. It comes back whenever its connection ends,
// sooner than the library would.
func (s *seen) begin(base string) {
	library, err := clientlib.New(base, clientlib.Options{})
	must(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended, following := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(following)
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) { // the node was killed, or is not ready
			sub, handler := s.sub, s.handler()
			s.locked(func() { s.behind = s.seq })
			sub.After = &s.behind
			once, stop := context.WithCancel(ctx)
			handler.Disconnected = func(why error, _ time.Duration) {
				s.lose(why)
				stop()
			}
			err := library.Stream(once, sub, handler)
			if stop(); !errors.Is(err, context.Canceled) {
				s.Errorf("the stream ended: %v", err)
				return
			}
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	}()
	s.leave = func(cut bool) {
		if !cut { // what a dead node had sent is still read
			select {
			case <-ended:
			case <-following:
			}
		}
		cancel()
		<-following
		for code := range s.lost {
			if !slices.Contains([]int{0, 1001, 1006, 1013, 4008}, code) {
				s.Errorf("a connection ended with code %d", code)
			}
		}
	}
}

// told returns the newest number that was heard.
func (s *seen) told() (seq uint64) {
	s.locked(func() { seq = s.seq })
	return seq
}

// untilNow returns what was seen until now. Blocks in it are not told again.
func (s *seen) untilNow() *seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := newSeen(s.TB)
	until.Starts, until.Wrong, until.Accounts = s.Starts, s.Wrong, maps.Clone(s.Accounts)
	until.seq, until.from, until.run, until.older = s.seq, s.from, slices.Clone(s.run), slices.Clone(s.older)
	until.nodeID, until.tips, until.blocks = s.nodeID, s.tips, s.blocks
	s.blocks = map[uint64]seenLevel{}
	return until
}

// watch lets clients look at a node until it is gone or the function it returns is called. The
// end of a node is no error: what clients had read by then was seen.
func (s *seen) watch(v *victim) (stop func()) {
	s.begin(v.base)
	ctx, cancel := context.WithCancel(context.Background())
	var polling sync.WaitGroup
	polling.Go(func() { s.poll(ctx, v) })
	return sync.OnceFunc(func() {
		cut := !v.IsGone() // what a dead node had sent is still read
		cancel()
		polling.Wait()
		s.leave(cut)
	})
}

// poll asks for the newest block of each level in turn.
func (s *seen) poll(ctx context.Context, v *victim) {
	for ctx.Err() == nil && !v.IsGone() {
		for level, name := range levels {
			a, err := v.ask(v.base + "/blocks/latest?commitment=" + name)
			if err != nil || a.status != http.StatusOK {
				time.Sleep(time.Millisecond) // recovering still, or gone already
				continue
			}
			var b clientlib.Block
			if err := json.Unmarshal([]byte(a.body), &b); err != nil {
				v.Errorf("the newest %s block is answered with %q", name, a.body)
				return
			}
			s.saw(v, level, seenBlock{b.Slot, b.Hash})
		}
	}
}

// saw notes a block. What is confirmed in the simulator's ledger stays, so its slot never falls.
func (s *seen) saw(v *victim, level int, b seenBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if level > 0 {
		if before := s.tips[level]; b.slot < before.slot {
			v.Errorf("the newest %s block was %d, then %d", levels[level], before.slot, b.slot)
		}
		before, ok := s.blocks[b.slot]
		if ok && before.hash != b.hash {
			v.Errorf("the %s block %d was %s, then %s", levels[level], b.slot, before.hash, b.hash)
		}
		s.blocks[b.slot] = seenLevel{b.hash, max(level, before.level)}
	}
	s.tips[level] = b
}

// pass waits until clients have seen more than a number: what finds nothing new shows nothing.
func (s *seen) pass(v *victim, seq uint64) {
	v.Helper()
	v.until("clients see something new, on every level", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.seq > seq && s.tips[2].slot > 0
	})
}

// killAtNews kills the node at the very moment a client hears something new: what the node
// says too early is most likely lost then.
func (s *seen) killAtNews(v *victim) {
	v.Helper()
	select {
	case <-s.news: // of before
	default:
	}
	select {
	case <-s.news:
	case <-v.Gone():
	case <-time.After(patience):
		v.Fatalf("clients hear nothing new within %v:\n%s", patience, v.errs)
	}
	v.Kill()
}

// newestSlot returns the slot of the newest block.
func newestSlot(v *victim) uint64 {
	v.Helper()
	a := v.get("/blocks/latest")
	var b clientlib.Block
	if err := json.Unmarshal([]byte(a.body), &b); err != nil || a.status != http.StatusOK {
		v.Fatalf("the newest block: %d %s", a.status, a.body)
	}
	return b.Slot
}
