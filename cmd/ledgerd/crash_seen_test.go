package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
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
	leave func(cut bool)     // ends the following
	tips  [3]clientlib.Block // by level: the newest that REST answered
}

func newSeen(t testing.TB) *seen {
	f := newFold("everything", clientlib.Subscription{Commitment: clientlib.Processed})
	f.Starts, f.Accounts, f.news = 1, map[string]string{}, make(chan struct{}, 1)
	return &seen{TB: t, clientFold: f}
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
			handler.SlotEnd = nil // that of the number it goes on from may come again to a new stream
			after := s.told()
			sub.After = &after
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

// untilNow returns what was seen until now.
func (s *seen) untilNow() *seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := newSeen(s.TB)
	until.Starts, until.Wrong, until.Accounts, until.seq = s.Starts, s.Wrong, maps.Clone(s.Accounts), s.seq
	until.tips = s.tips
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
			s.locked(func() { s.follows(level, b) })
		}
	}
}

// follows notes the newest block of a level, which comes after the one before: in the simulator's ledger what wins over a branch is above it.
func (s *seen) follows(level int, b clientlib.Block) {
	before := s.tips[level]
	if b.Slot < before.Slot || b.Slot == before.Slot && b.Hash != before.Hash {
		s.Errorf("the newest %s block was %d %s, then %d %s", levels[level], before.Slot, before.Hash, b.Slot, b.Hash)
	}
	s.tips[level] = b
}

// check holds a node that serves what its disk had against what clients had seen before. It returns where the node stands.
func (s *seen) check(v *victim) (here place) {
	s.Helper()
	here = standsAt(s, v.base, levels[0])
	if seq := s.told(); here.seq < seq {
		s.Errorf("the newest number is %d, but %d was seen", here.seq, seq)
		return here
	}
	for level, name := range levels {
		if tip := s.tips[level]; tip.Slot > 0 {
			s.follows(level, newestAt(v, name))
			if a := v.get(fmt.Sprintf("/blocks/%d?commitment=%s", tip.Slot, name)); level > 0 && !strings.Contains(a.body, `"blockhash":"`+tip.Hash+`"`) {
				s.Errorf("block %d was seen %s with hash %s, and is answered with %d %s", tip.Slot, name, tip.Hash, a.status, a.body)
			}
		}
	}

	// The client hears what it missed, and then knows what the node answers.
	s.begin(v.base)
	v.until("the client is told the newest number", func() bool { return s.told() >= here.seq })
	s.leave(true)
	all := map[string]accountState{}
	if here.seq > 0 {
		all, _ = v.accounts(levels[0], true)
	}
	if err := s.differs(all); err != nil || s.Wrong != "" {
		s.Errorf("the client: %v; %s", err, s.Wrong)
	}
	return here
}

// pass waits until clients have seen more than a number: what finds nothing new shows nothing.
func (s *seen) pass(v *victim, seq uint64) {
	v.Helper()
	v.until("clients see something new, on every level", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.seq > seq && s.tips[2].Slot > 0
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
	return newestAt(v, levels[0]).Slot
}

// newestAt returns the newest block of a level.
func newestAt(v *victim, level string) (b clientlib.Block) {
	v.Helper()
	a := v.get("/blocks/latest?commitment=" + level)
	if err := json.Unmarshal([]byte(a.body), &b); err != nil || a.status != http.StatusOK {
		v.Fatalf("the newest %s block: %d %s", level, a.status, a.body)
	}
	return b
}
