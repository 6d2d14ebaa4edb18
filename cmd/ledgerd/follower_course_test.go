package main

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// course is where followers go on, and until when.
type course struct {
	// choose returns the address of one of several nodes, "" where none is ready; nil: there is one
	// node at a time.
	choose func(*rand.Rand) string
	lags   bool          // a node may be behind another one
	news   chan struct{} // where it is there, gets a token whenever a follower is told something

	mu    sync.Mutex
	base  string
	moved chan struct{} // closed when base changes, and when all is over
	ends  map[string]place
	over  bool // nobody comes back any more
}

func newCourse(choose func(*rand.Rand) string) *course {
	return &course{choose: choose, moved: make(chan struct{})}
}

// courseAt stays at one node.
func courseAt(base string) *course { return newCourse(func(*rand.Rand) string { return base }) }

// goTo sends followers to a node; "" keeps them from any until there is another one.
func (c *course) goTo(base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = base
	close(c.moved)
	c.moved = make(chan struct{})
}

// where returns the newest node's address, or that of a random one, "" where there is none, and what is closed when there is another one.
func (c *course) where(random *rand.Rand) (base string, moved chan struct{}) {
	if c.choose != nil {
		const chooseAgain = 20 * time.Millisecond
		moved = make(chan struct{})
		time.AfterFunc(chooseAgain, func() { close(moved) })
		return c.choose(random), moved
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base, c.moved
}

// giveUp keeps followers from coming back.
func (c *course) giveUp() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.goTo("")
}

// isOver reports whether nobody is to come back any more.
func (c *course) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// endAt says where the ledger ends at each level.
func (c *course) endAt(ends map[string]place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = ends
}

// goesOn reports whether the ledger may go on.
func (c *course) goesOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends == nil
}

// endSeq returns the number at which the ledger ended.
func (c *course) endSeq() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends["processed"].seq
}

// isEnd reports whether a level ends at a place.
func (c *course) isEnd(level string, p place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	end, known := c.ends[level]
	return known && p == end
}

// standsAt returns where a node is at a level.
func standsAt(t testing.TB, base, level string) place {
	t.Helper()
	conn, err := dialOwn(streamURL(base)+"?mode=none&commitment="+level, false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Reset()
	if err := conn.WriteText([]byte(pingText)); err != nil {
		t.Fatal(err)
	}
	text, err := conn.read()
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil || m.Type != "pong" {
		t.Fatalf("a ping is answered with %q", text)
	}
	return place{m.Slot, m.Seq}
}
