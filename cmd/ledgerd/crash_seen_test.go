package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// seen is what clients were shown. Whatever ends the node, all of it must be there afterwards.
type seen struct {
	mu     sync.Mutex
	nodeID string
	tips   [3]seenBlock      // by level: the newest block that REST answered
	blocks map[uint64]string // by slot: hash of the blocks that were called confirmed
	seq    uint64            // the newest that a socket told
	runs   [][]spoken        // what each socket told, in order: updates, ends of slots, rollbacks
	news   chan struct{}     // gets a token whenever a socket told something
}

// seenBlock names a block. The zero value says that none was seen.
type seenBlock struct {
	slot uint64
	hash string
}

func newSeen() *seen { return &seen{blocks: map[uint64]string{}, news: make(chan struct{}, 1)} }

// untilNow returns what was seen until now, but for the frames. Blocks in it are not told again.
func (s *seen) untilNow() *seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := newSeen()
	until.nodeID, until.tips, until.blocks, until.seq = s.nodeID, s.tips, s.blocks, s.seq
	s.blocks, s.runs = map[uint64]string{}, [][]spoken{nil}
	return until
}

// watch lets clients look at a node until it is gone or the function it returns is called. The
// end of a node is no error: what clients had read by then was seen.
func (s *seen) watch(v *victim) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	clients.Go(func() { s.poll(ctx, v) })
	clients.Go(func() { s.listen(ctx, v) })
	return func() {
		if !v.IsGone() {
			cancel()
		}
		clients.Wait() // what a dead node had sent is still read
		cancel()
	}
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
			var b blockRecord
			if err := json.Unmarshal([]byte(a.body), &b); err != nil {
				v.Errorf("the newest %s block is answered with %q", name, a.body)
				return
			}
			s.saw(v, level, seenBlock{b.Slot, b.Blockhash})
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
		if before, ok := s.blocks[b.slot]; ok && before != b.hash {
			v.Errorf("the %s block %d was %s, then %s", levels[level], b.slot, before, b.hash)
		}
		s.blocks[b.slot] = b.hash
	}
	s.tips[level] = b
}

// listen reads a socket, and another one where that ends before the node does.
func (s *seen) listen(ctx context.Context, v *victim) {
	for ctx.Err() == nil && !v.IsGone() {
		s.mu.Lock()
		s.runs = append(s.runs, nil)
		s.mu.Unlock()
		if err := hear(ctx, v.base, func(f spoken) bool { s.heard(v, f); return true }); err != nil {
			time.Sleep(time.Millisecond)
		}
	}
}

func (s *seen) heard(v *victim, f spoken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Seq < s.seq {
		v.Errorf("%s says number %d after %d was seen", f.text, f.Seq, s.seq)
	}
	s.seq = f.Seq
	if f.Type != "heartbeat" && f.Type != "pong" {
		newest := &s.runs[len(s.runs)-1]
		*newest = append(*newest, f)
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
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
	v.kill()
}

// newest returns the newest number that a socket told.
func (s *seen) newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// newestSlot returns the slot of the newest block.
func newestSlot(v *victim) uint64 {
	v.Helper()
	a := v.get("/blocks/latest")
	var b blockRecord
	if err := json.Unmarshal([]byte(a.body), &b); err != nil || a.status != http.StatusOK {
		v.Fatalf("the newest block: %d %s", a.status, a.body)
	}
	return b.Slot
}
