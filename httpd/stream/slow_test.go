package stream

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
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
	accounts := make([]ledger.Account, 500)
	for end := time.Now().Add(patience); !until(); {
		slot := n.script.nextSlot()
		for i := range accounts {
			accounts[i] = account(i, ledger.Lamports(slot), programA)
		}
		n.script.block(slot, accounts...)
		if time.Now().After(end) {
			n.Fatalf("still not after %v of blocks", patience)
		}
	}
}

// ended returns how many connections ended for a reason.
func (n *node) ended(why reason) uint64 { return n.hub.meters.ends[why].Get() }

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

func TestASlowConsumerIsToldWhereItStopped(t *testing.T) {
	for _, query := range []string{"?extended=true", "?extended=true&programs=" + programA.String()} {
		n := serve(t, func(c *Config) { c.RingBytes, c.OutboxBytes = 256<<10, 256<<10 })
		c := n.slow(query)
		n.script.block(1, account(1, 1, programA))
		early := c.settle()
		n.flood(n.overflown)
		before, code, text := c.ends()
		before = append(early, before...)
		knows := heard{state: state{}}
		next := ledger.Seq(1)
		for _, u := range readUpdates(t, before) {
			if u.Seq != next {
				t.Fatalf("%s: seq %d came, want %d: something is left out in the middle", query, u.Seq, next)
			}
			next++
		}
		knows.fold(t, before)
		if want := fmt.Sprintf("slow consumer, last_seq=%d", knows.seq); code != 4008 || text != want || knows.seq == 0 {
			t.Errorf("%s: ended with %d %q, want 4008 %q", query, code, text, want)
		}
		if got := n.ended(reasonSlow); got != 1 {
			t.Errorf("%s: %d slow consumers counted, want 1", query, got)
		}
	}
}

// Who reads, but not fast enough, is told so too, even if what is being written takes long.
func TestASlowConsumerThatStillReadsIsToldSo(t *testing.T) {
	for _, query := range []string{"?extended=true", "?extended=true&programs=" + programA.String()} {
		inMemory(t, func(c *Config) { c.RingBytes, c.OutboxBytes = 256<<10, 256<<10 }, func(n *node) {
			n.script.block(1, account(1, 1, programA))
			c := n.dial(query)
			n.flood(n.overflown)
			c.r = bufio.NewReader(thinLine{c.conn})
			before, code, text := c.ends()
			knows := heard{state: state{}, seq: 1} // it has joined after the first
			knows.fold(t, before)
			if want := fmt.Sprintf("slow consumer, last_seq=%d", knows.seq); code != 4008 || text != want {
				n.Errorf("%s: ended with %d %q, want 4008 %q", query, code, text, want)
			}
			if got := n.ended(reasonSlow); got != 1 {
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

func TestASocketThatTakesNothingIsReset(t *testing.T) {
	n := serve(t, func(c *Config) { c.WriteTimeout = 20 * time.Millisecond })
	c := n.slow("?extended=true")
	n.flood(func() bool { return n.ended(reasonStalled) == 1 })
	// What it then reads is whole frames, to the place where the socket breaks.
	knows := heard{state: state{}}
	for {
		op, text, err := c.read()
		if err != nil {
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the socket ended with %v, want a reset", err)
			}
			break
		}
		if op != frame.Text {
			t.Fatalf("opcode %#x inside the stream", op)
		}
		knows.fold(t, []string{text})
	}
	eventually(t, "the connection is gone", func() bool { return n.hub.meters.connections.Get() == 0 })
}

func TestOthersAreNotAffectedByTheSlow(t *testing.T) {
	n := serve(t, func(c *Config) { c.RingBytes = 1 << 20 })
	var slow []*client
	for range 5 {
		slow = append(slow, n.slow(""))
	}
	reader := n.dial("?extended=true")
	const blocks = 60
	window, read := make(chan struct{}, 2), make(chan error, 1) // so that the reader itself is fast enough
	go func() {
		next := ledger.Seq(1)
		for {
			_, text, err := reader.read()
			switch {
			case err != nil:
				read <- err
				return
			case text == slotEnd(blocks, blocks*500):
				read <- nil
				return
			case strings.HasPrefix(text, `{"type":"slot_end"`):
				<-window
			case !strings.Contains(text, fmt.Sprintf(`"seq":%d,`, next)):
				read <- fmt.Errorf("%s came, want seq %d", text, next)
				return
			default:
				next++
			}
		}
	}()
	n.flood(func() bool {
		if n.script.seq < blocks*500 {
			window <- struct{}{}
		}
		return n.script.seq == blocks*500
	})
	if err := <-read; err != nil {
		t.Fatalf("the reader got %v", err)
	}
	if !n.overflown() {
		t.Error("no subscriber was slow")
	}
	for _, c := range slow {
		_ = c.conn.Close()
	}
	eventually(t, "the slow are gone", func() bool { return n.hub.meters.connections.Get() == 1 })
}

// A client that resets its socket in the middle of everything takes nobody with it.
func TestResetsInTheMiddle(t *testing.T) {
	n := serve(t, nil)
	for i := range 20 {
		c := n.slow("")
		if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		n.flood(func() bool { return n.script.seq%2500 == 0 && n.script.seq > ledger.Seq(i)*2500 })
		_ = c.conn.Close()
	}
	eventually(t, "all are gone", func() bool { return n.hub.meters.connections.Get() == 0 })
	if got := n.ended(reasonGone); got != 20 {
		t.Errorf("%d counted as gone, want 20", got)
	}
	c := n.dial("")
	c.close("\x03\xe8")
	c.endsWith(1000, "")
}
