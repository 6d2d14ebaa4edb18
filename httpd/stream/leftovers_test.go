package stream

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// leftovers says what the hub still holds for connections; "" is nothing.
func (n *node) leftovers() string {
	var held []string
	count := func(what string, count int) {
		if count != 0 {
			held = append(held, fmt.Sprintf("%d %s", count, what))
		}
	}
	n.hub.mu.Lock()
	defer n.hub.mu.Unlock()
	for i := range n.hub.levels {
		a := &n.hub.levels[i]
		count("subscribers", len(a.all))
		count("that are walked", len(a.perEmission))
		count("pubkeys in the index", len(a.indexes[pubkeys].first))
		count("programs in the index", len(a.indexes[programs].first))
		for _, r := range a.rings {
			if r != nil {
				count("rings", 1)
			}
		}
	}
	n.hub.seats.mu.Lock()
	defer n.hub.seats.mu.Unlock()
	count("seats", n.hub.seats.taken)
	for _, c := range n.hub.seats.clients { // those that have work to pay for stay for a while
		count("connections of a client", c.conns)
	}
	count("connections counted", int(n.hub.meters.connections.Get()))
	count("bytes that wait", int(n.hub.memory.used.Load()))
	return strings.Join(held, ", ")
}

// awaitEmpty waits until the hub holds nothing for connections.
func (n *node) awaitEmpty() {
	n.Helper()
	var left string
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if left = n.leftovers(); left == "" {
			return
		}
		if time.Now().After(end) {
			n.Fatalf("still held after %v: %s", patience, left)
		}
	}
}

// sockets counts those this process holds.
func sockets(t *testing.T) (count int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("no list of open files: %v", err)
	}
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			count++
		}
	}
	return count
}

// However connections end, nothing of them stays: no subscriber, name, ring, seat, goroutine or
// socket. The goroutines are looked for where the node stops.
func TestEndedConnectionsLeaveNothing(t *testing.T) {
	queries := []string{
		"", "?extended=true", "?mode=none", "?commitment=finalized&overflow=conflate", "?extended=true&programs=" + programA.String(),
		"?pubkeys=" + key(1).String() + "," + key(2).String(), "?resume_from=0", "?extended=true&resume_from=1000000000",
	}
	reset := func(c *client) {
		if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil {
			c.Fatal(err)
		}
		_ = c.conn.Close()
	}
	kicks := map[string][]byte{
		"protocol": frameBytes(finBit|3, ""),
		"binary":   binaryOf("x"),
		"utf8":     text("\xff"),
		"too big":  text(repeat(frame.MaxMessageBytes + 1)),
	}
	endings := map[string]func(*node, *client){
		"closed": func(_ *node, c *client) {
			c.close(codeOf(1000, ""))
			if _, code, _ := c.ends(); code != 1000 {
				c.Errorf("ended with %d, want 1000", code)
			}
		},
		"gone":           func(_ *node, c *client) { _ = c.conn.Close() },
		"reset":          func(_ *node, c *client) { reset(c) },
		"reset midframe": func(_ *node, c *client) { c.raw(text(`{"type":"ping"}`)[:9]); reset(c) },
		"reset at once after a snapshot": func(_ *node, c *client) {
			c.send(`{"type":"subscribe","snapshot":true,"programs":%s}`, list(programA))
			reset(c)
		},
		"flood": func(_ *node, c *client) {
			for range 2 * budgetBurst {
				if _, err := c.conn.Write(ping("")); err != nil {
					break
				}
			}
			if _, code, _ := c.endsAndHangsUp(); code != 1008 {
				c.Errorf("ended with %d, want 1008", code)
			}
		},
	}
	for name, frame := range kicks {
		endings[name] = func(_ *node, c *client) {
			c.raw(frame)
			c.endsAndHangsUp()
		}
	}
	before := sockets(t)
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			n := serve(t, nil)
			for round := range 3 {
				var clients []*client
				for _, q := range queries {
					clients = append(clients, n.dial(q))
				}
				n.script.block(n.script.nextSlot(), account(1, ledger.Lamports(round+1), programA), account(2, 1, programB))
				for _, c := range clients {
					end(n, c)
				}
			}
			n.awaitEmpty()
		})
	}
	awaitSockets(t, before)
}

// awaitSockets waits until there are no more sockets than before.
func awaitSockets(t *testing.T, before int) {
	t.Helper()
	eventually(t, "all sockets are closed", func() bool { return sockets(t) <= before })
}

// So it is with those that the node ends by itself.
func TestEvictedConnectionsLeaveNothing(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		why    reason
	}{
		"stalled": {func(c *Config) { c.WriteTimeout = 20 * time.Millisecond }, reasonStalled},
		"slow":    {func(c *Config) { c.RingBytes, c.OutboxBytes = 256<<10, 256<<10 }, reasonSlow},
	}
	before := sockets(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := serve(t, tt.change)
			var clients []*client
			for _, q := range []string{"", "?extended=true", "?extended=true&programs=" + programA.String(), "?programs=" + programA.String()} {
				clients = append(clients, n.slow(q))
			}
			// Nobody reads until all are stalled, or have far more coming than sockets, rings and outboxes hold.
			enough := 2 * socketBlocks * blockBytes / len(basicFrame(account(1, 1, programA), 1))
			n.flood(func() bool {
				if tt.why == reasonStalled {
					return n.ended(tt.why) == uint64(len(clients))
				}
				return n.script.seq > ledger.Seq(enough)
			})
			for _, c := range clients {
				for err := error(nil); err == nil; {
					_, _, err = c.read()
				}
				_ = c.conn.Close()
			}
			n.awaitEmpty()
			if got := n.ended(tt.why); got != uint64(len(clients)) {
				t.Errorf("%d connections were counted as %s, want %d", got, reasonNames[tt.why], len(clients))
			}
		})
	}
	awaitSockets(t, before)
}

// Refused handshakes hold nothing either, also where there is no more room for others.
func TestRefusedHandshakesLeaveNothing(t *testing.T) {
	before := sockets(t)
	t.Run("refused", func(t *testing.T) {
		n := serve(t, func(c *Config) { c.MaxConns, c.Origins = 1, []string{"https://app.example"} })
		held := n.dial("")
		for range 10 {
			for query, headers := range map[string][]string{
				"":           nil, // full
				"?pubkeys=x": nil,
				"?mode=none": {"Origin: https://evil.example"},
				"?":          {"Upgrade: no"},
			} {
				if response, _ := n.handshake(query, headers...); response.StatusCode < 400 {
					t.Errorf("%q %q: %s, want a refusal", query, headers, response.Status)
				}
			}
		}
		held.quiet()
		held.close(codeOf(1000, ""))
		held.endsWith(1000, "")
		n.awaitEmpty()
	})
	awaitSockets(t, before)
}

// Shutdown leaves nothing, whoever was connected and whether they answer.
func TestShutdownLeavesNothing(t *testing.T) {
	before := sockets(t)
	t.Run("shutdown", func(t *testing.T) {
		n := serve(t, nil)
		for _, q := range []string{"", "?extended=true", "?mode=none", "?pubkeys=" + key(1).String()} {
			n.dial(q)
		}
		n.dial("?resume_from=5").expect(resumed("null", 5))
		for range 3 {
			n.dial("").close(codeOf(1000, ""))
		}
		if err := n.hub.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if left := n.leftovers(); left != "" {
			t.Errorf("after Shutdown are left: %s", left)
		}
	})
	awaitSockets(t, before)
}

// Clients that vanish leave nothing, whatever frame they were in the middle of.
func TestVanishedClientsLeaveNothing(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	whole := text(`{"type":"subscribe","pubkeys":` + list(key(1)) + `}`)
	for cut := range len(whole) {
		c := n.dial("")
		c.raw(whole[:cut])
		_ = c.conn.Close()
	}
	n.awaitEmpty()
}
