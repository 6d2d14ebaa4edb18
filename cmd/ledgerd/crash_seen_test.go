package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	clientlib "ledgerd/httpd/client"
)

// seen is what clients were shown: one that follows a socket through all nodes of a directory, and one that asks for blocks.
// Whatever ends the node, all of it must be there afterwards.
type seen struct {
	*follower
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
	f := &follower{TB: t, name: "the client", level: "processed", mayMiss: true, mayEnd: []uint16{0, 1001, 1013, 4008}}
	return &seen{follower: f, blocks: map[uint64]seenLevel{}}
}

// untilNow returns what was seen until now. Blocks in it are not told again.
func (s *seen) untilNow() *seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := newSeen(s.TB)
	until.folded = s.folded
	until.accounts, until.runs = maps.Clone(s.accounts), nil
	for _, run := range s.runs {
		until.runs = append(until.runs, slices.Clone(run))
	}
	until.nodeID, until.tips, until.blocks = s.nodeID, s.tips, s.blocks
	s.blocks = map[uint64]seenLevel{}
	return until
}

// watch lets clients look at a node until it is gone or the function it returns is called. The
// end of a node is no error: what clients had read by then was seen.
func (s *seen) watch(v *victim) (stop func()) {
	s.news, s.end = make(chan struct{}, 1), nil
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
