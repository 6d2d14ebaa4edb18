package stream

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
)

// slow makes a subscriber whose socket holds little and that reads nothing yet.
func (n *node) slow(query string) *client {
	n.Helper()
	c := n.dial(query)
	if err := c.conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		n.Fatal(err)
	}
	return c
}

// flood publishes blocks of 500 accounts until a condition holds.
func (n *node) flood(until func() bool) {
	n.Helper()
	for end := time.Now().Add(patience); !until(); {
		slot := n.script.nextSlot()
		n.script.block(slot, accounts(0, 500, ledger.Lamports(slot))...)
		if time.Now().After(end) {
			n.Fatalf("still not after %v of blocks", patience)
		}
	}
}

// ended returns how many connections ended for a reason.
func (n *node) ended(why string) uint64 { return n.hub.meters.ends[why].Load() }

// socketBlocks is more than the sockets of a slow client hold, in blocks of a ring.
const socketBlocks = 16

// overflown reports whether some subscriber is about to end, or is lapped if it reads nothing.
func (n *node) overflown() bool {
	n.hub.mu.Lock()
	defer n.hub.mu.Unlock()
	for s := range n.hub.levels[ledger.Processed].all {
		if s.outbox.isClosing() || s.ring != nil && s.ring.end.number() > socketBlocks+uint64(len(s.ring.slots)) {
			return true
		}
	}
	return false
}

// endsSlow reads up to the end, which must be that of a slow consumer, and returns the last seq it was
// told. Each update must follow the one before, the first of them a seq.
func (c *client) endsSlow(seq ledger.Seq) ledger.Seq {
	c.Helper()
	before, end := c.ends()
	for _, u := range readUpdates(c, before) {
		if seq++; u.Seq != seq {
			c.Fatalf("seq %d came, want %d: something is left out in the middle", u.Seq, seq)
		}
	}
	if want := (ending{codeSlow, fmt.Sprintf("slow consumer, last_seq=%d", seq)}); end != want {
		c.Fatalf("ended with %v, want %v", end, want)
	}
	return seq
}

// Who reads, but not fast enough, is told so too, even if what is being written takes long.
func TestASlowConsumerThatStillReadsIsToldSo(t *testing.T) {
	for _, query := range []string{"?extended=true", "?extended=true&programs=" + programA.String()} {
		inMemory(t, func(c *Config) { c.RingBytes, c.OutboxBytes = 256<<10, 256<<10 }, func(n *node) {
			n.script.block(1, account(1, 1, programA))
			c := n.dial(query)
			n.flood(func() bool { return n.script.seq > 1 })
			synctest.Wait() // until a batch is being written
			n.flood(n.overflown)
			c.r = bufio.NewReader(thinLine{c.conn})
			c.endsSlow(1) // it has joined after the first
			if got := n.ended(endSlow.reason); got != 1 {
				n.Errorf("%s: %d slow consumers counted, want 1", query, got)
			}
		})
	}
}

// thinLine is a connection that carries some 40 KB a second.
type thinLine struct{ net.Conn }

func (l thinLine) Read(b []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return l.Conn.Read(b[:min(len(b), 4000)])
}

// The slow are told all in order up to where they were lapped, and then so. Others hear everything meanwhile.
func TestOthersAreNotAffectedByTheSlow(t *testing.T) {
	n := serve(t, func(c *Config) { c.RingBytes = 1 << 20 })
	var slow []*client
	for range 5 {
		slow = append(slow, n.slow("?extended=true"))
	}
	reader := n.dial("?extended=true")
	seq := ledger.Seq(0)
	for range 60 {
		n.flood(func() bool { return n.script.seq > seq })
		for _, u := range readUpdates(t, reader.settle()) {
			if seq++; u.Seq != seq {
				t.Fatalf("the reader got seq %d, want %d", u.Seq, seq)
			}
		}
	}
	if seq != n.script.seq || !n.overflown() {
		t.Errorf("the reader got %d of %d updates, and some subscriber was slow: %t", seq, n.script.seq, n.overflown())
	}
	for _, c := range slow {
		c.endsSlow(0)
	}
	eventually(t, "the slow are gone", func() bool { return n.connections() == 1 })
	n.wantMetric(`ledgerd_ws_closed_total{reason="slow_consumer"} %d`, len(slow))
	n.wantMetric("ledgerd_ws_laps_total %d", len(slow))
	n.wantMetric("ledgerd_ws_gaps_total 0")
}

// Whoever reads nothing is not lapped while no more than the ring promises waits for it.
func TestARingHoldsWhatItPromises(t *testing.T) {
	const promised = 1 << 20
	inMemory(t, func(c *Config) { c.RingBytes = promised }, func(n *node) {
		c := n.dial("?extended=true")
		n.script.block(1, accounts(0, blockBytes/maxFrameBytes*15/8, 1)...)
		synctest.Wait() // until it stands near the end of a block
		for told := 0; told < promised; {
			slot := n.script.nextSlot()
			for _, frame := range framesOf(n.script.append(slot, accounts(0, 50, ledger.Lamports(slot))...)) {
				told += len(frame)
			}
			n.script.publish()
		}
		if got := readUpdates(n, c.settle()); ledger.Seq(len(got)) != n.script.seq {
			n.Errorf("%d updates came, want %d", len(got), n.script.seq)
		}
	})
}

// inTurns returns a function that lets some blocks of two accounts come, beside the test. It waits
// until those of the call before the last have come.
func (n *node) inTurns(blocks int) (turn func()) {
	turns := make(chan struct{}, 1)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for range turns {
			for range blocks {
				slot := n.script.nextSlot()
				n.script.block(slot, account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programB))
			}
		}
	})
	n.Cleanup(func() {
		close(turns)
		publishing.Wait()
	})
	return func() { turns <- struct{}{} }
}

// Whoever goes between everything and names hears each update once, in order, while blocks come. And
// answers stand where they belong among the frames: they name the seq of the one before.
func TestTurnsBetweenRingAndNamesAreExact(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(1)
		c := n.dial("?extended=true")
		turn := n.inTurns(50)
		next, last := ledger.Seq(1), ledger.Seq(0)
		for round := range 45 { // within the budget of messages
			turn()
			if round%2 == 0 { // of the same accounts, by name
				c.send(`{"type":"subscribe","id":1,"programs":%s}`, list(programA, programB))
			} else {
				c.send(`{"type":"subscribe","id":1}`)
			}
			c.send(`{"type":"ping"}`)
			for kind := ""; kind != "pong"; {
				f := parse(n, c.next())
				switch f.Type {
				case "account_update":
					if f.Seq != next {
						n.Fatalf("round %d: seq %d came, want %d", round, f.Seq, next)
					}
					next++
				case "subscribed", "pong":
					if f.Seq != last {
						n.Fatalf("round %d: %s names seq %d after a frame of %d", round, f.Type, f.Seq, last)
					}
				}
				kind, last = f.Type, f.Seq
			}
		}
		if next < 1000 {
			n.Errorf("only %d updates came", next-1)
		}
	})
}
