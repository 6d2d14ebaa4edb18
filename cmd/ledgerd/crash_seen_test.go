package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
)

// seen is what clients were shown. Whatever ends the node, all of it must be there afterwards.
type seen struct {
	mu     sync.Mutex
	nodeID string
	tips   [3]seenBlock      // by level: the newest block that REST answered
	blocks map[uint64]string // by slot: hash of the blocks that were called confirmed
	seq    uint64            // the newest that a socket told
	frames []string          // that a socket told, in order: updates, ends of slots, rollbacks
	joined bool              // this process's socket has told something
	news   chan struct{}     // gets a token whenever a socket told something
}

// seenBlock names a block. The zero value says that none was seen.
type seenBlock struct {
	slot uint64
	hash string
}

func newSeen() *seen { return &seen{blocks: map[uint64]string{}, news: make(chan struct{}, 1)} }

// untilNow returns what was seen until now. The blocks and frames in it are not
// told again.
func (s *seen) untilNow() *seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := newSeen()
	until.nodeID, until.tips, until.blocks, until.seq, until.frames = s.nodeID, s.tips, s.blocks, s.seq, s.frames
	s.blocks, s.frames = map[uint64]string{}, nil
	return until
}

// watch lets clients look at a node until it is gone or the function it returns is called. The
// end of a node is no error: what clients had read by then was seen.
func (s *seen) watch(v *victim) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s.joined = false
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

// listen reads the socket. It asks for the newest number first.
func (s *seen) listen(ctx context.Context, v *victim) {
	var conn *websocket.Conn
	for conn == nil {
		var response *http.Response
		var err error
		conn, response, err = websocket.DefaultDialer.DialContext(ctx, "ws"+strings.TrimPrefix(v.base, "http")+"/ws/accounts?extended=true", nil)
		if response != nil {
			response.Body.Close()
		}
		if err != nil {
			if ctx.Err() != nil || v.IsGone() {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"ping","id":1}`)); err != nil {
		return
	}
	for {
		_, text, err := conn.ReadMessage()
		if err != nil {
			return
		}
		s.heard(v, text)
	}
}

// spoken is what a frame of any type says of its place.
type spoken struct {
	Type      string
	Pubkey    string
	Owner     string
	Lamports  json.Number
	Slot, Seq uint64
	FromSlot  uint64 `json:"from_slot"`
	ToSlot    uint64 `json:"to_slot"`
}

func (s *seen) heard(v *victim, text []byte) {
	var f spoken
	if err := json.Unmarshal(text, &f); err != nil {
		v.Errorf("frame %q: %v", text, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f.Type == "account_update" && s.joined && f.Seq != s.seq+1:
		v.Errorf("update %d comes after %d", f.Seq, s.seq)
	case f.Seq < s.seq:
		v.Errorf("%s says number %d after %d was seen", text, f.Seq, s.seq)
	}
	s.seq, s.joined = f.Seq, true
	if f.Type != "heartbeat" && f.Type != "pong" {
		s.frames = append(s.frames, string(text))
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
