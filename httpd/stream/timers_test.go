package stream

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// What the interface says of time, tested with the durations that a node has by default. Ticks
// may come up to a second late, but writes that time out only by a tenth of their limit.
const late = time.Second

// elapsed fails unless so much time has passed since, or a little more.
func (n *node) elapsed(what string, since time.Time, want, slack time.Duration) {
	n.Helper()
	if got := time.Since(since); got < want || got > want+slack {
		n.Errorf("%s after %v, want %v to %v", what, got, want, want+slack)
	}
}

// pinged reads frames up to the next ping, which is not answered.
func (c *client) pinged() {
	c.Helper()
	if op, payload, err := c.read(); op != frame.Ping || payload != "" || err != nil {
		c.Fatalf("opcode %#x, payload %q, err %v, want an empty ping", op, payload, err)
	}
}

func TestPingsComeEvery20Seconds(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?mode=none")
		since := time.Now()
		for range 30 { // ten minutes, ten times what a silent connection has
			c.pinged()
			n.elapsed("a ping", since, 20*time.Second-late, 2*late)
			since = time.Now()
			c.raw(pong(""))
		}
	})
}

func TestSilenceEndsTheConnectionAfterAMinute(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		for _, query := range []string{"?mode=none", "", "?extended=true"} {
			c := n.dial(query)
			since := time.Now()
			pings := 0
			for {
				op, payload, err := c.read()
				if err != nil {
					n.Fatal(err)
				}
				if op == frame.Ping {
					pings++
				}
				if op != frame.Close {
					continue
				}
				if payload != codeOf(1008, "no sign of life") {
					n.Errorf("%q: the close frame is %q, want 1008", query, payload)
				}
				break
			}
			n.elapsed("the end", since, time.Minute, late)
			if pings < 2 || pings > 3 {
				n.Errorf("%q: %d pings within a minute, want 2 or 3", query, pings)
			}
			if _, _, err := c.read(); !errors.Is(err, io.EOF) {
				n.Errorf("%q: after the close frame: err = %v, want EOF", query, err)
			}
		}
	})
}

// Somebody who is told something all the time is pinged, hears heartbeats, and is let go for
// saying nothing, like anybody: taking frames is no sign of life.
func TestTimePassesOnBusyConnectionsToo(t *testing.T) {
	for _, query := range []string{"?extended=true", "?extended=true&pubkeys=" + key(1).String(), "?extended=true&overflow=conflate"} {
		inMemory(t, nil, func(n *node) {
			c := n.dial(query)
			since := time.Now()
			over := make(chan struct{})
			go func() {
				for {
					select {
					case <-over:
						return
					case <-time.After(10 * time.Millisecond):
						n.script.block(n.script.nextSlot(), account(1, ledger.Lamports(n.script.nextSlot()), programA))
					}
				}
			}()
			pings, beats, updates, op, payload := 0, 0, 0, frame.Text, ""
			for op != frame.Close {
				var err error
				if op, payload, err = c.read(); err != nil {
					n.Fatal(err)
				}
				switch {
				case op == frame.Ping:
					pings++
				case strings.HasPrefix(payload, `{"type":"heartbeat"`):
					beats++
				case strings.HasPrefix(payload, `{"type":"account_update"`):
					updates++
				}
			}
			close(over)
			if payload != codeOf(1008, "no sign of life") {
				n.Errorf("%s: the close frame is %q, want 1008", query, payload)
			}
			n.elapsed("the end", since, time.Minute, late)
			if pings < 2 || pings > 3 || beats < 58 || beats > 61 || updates < 5900 {
				n.Errorf("%s: %d pings, %d heartbeats, %d updates in a minute, want 2 or 3, 60, and 6000", query, pings, beats, updates)
			}
		})
	}
}

// Any whole frame is a sign of life, half of one is not: its bytes must not hold a connection.
func TestSignsOfLife(t *testing.T) {
	tests := map[string]struct {
		frame []byte
		lives bool
	}{
		"a pong":           {pong(""), true},
		"a ping":           {ping("x"), true},
		"a message":        {text(`{"type":"ping"}`), true},
		"a fragment":       {more(""), true},
		"half of a header": {text("{}")[:1], false},
		"half of a frame":  {text(`{"type":"ping"}`)[:10], false},
	}
	for name, tt := range tests {
		inMemory(t, nil, func(n *node) {
			c := n.dial("?mode=none")
			if name == "a fragment" {
				c.raw(begun(""))
			}
			since := time.Now()
			go func() { _, _ = io.Copy(io.Discard, c.r) }()
			time.Sleep(55 * time.Second)
			c.raw(tt.frame)
			<-c.near().closed
			want := time.Minute
			if tt.lives {
				want += 55 * time.Second
			}
			n.elapsed(name+": the end", since, want, late+closeWait)
		})
	}
}

func TestHeartbeatsComeEachSecond(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(3, account(1, 1, programA))
		plain := n.dial("?mode=none")
		filtered, later := n.dial("?mode=none&extended=true"), n.dial("?extended=true&commitment=confirmed")
		beats := func(c *client, slot ledger.Slot, seq ledger.Seq) {
			n.Helper()
			var since time.Time
			for i := range 4 {
				if got, want := c.next(), string(appendHeartbeat(nil, slot, seq, time.Now())); got != want {
					n.Errorf("told %s, want %s", got, want)
				}
				if i > 0 {
					n.elapsed("a heartbeat", since, time.Second-late/10, late/5)
				}
				since = time.Now()
			}
		}
		beats(filtered, 3, 1)
		go func() { _, _ = io.Copy(io.Discard, later.r) }()
		n.script.block(4, account(1, 2, programA))
		for filtered.next() != slotEnd(4, 2) {
		}
		beats(filtered, 4, 2)
		another := n.dial("?extended=true&commitment=confirmed")
		beats(another, 3, 1) // the root is finalized
		plain.quiet()
	})
}

func TestAnUnknownSeqIsWaitedForTenSeconds(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(1, account(1, 1, programA))
		for id, query := range map[string]string{"null": "?mode=none&resume_from=100", "7": "?mode=none"} {
			c := n.dial(query)
			since := time.Now()
			if id != "null" {
				c.send(`{"type":"resume","id":%s,"from_seq":100}`, id)
			}
			c.expect(resumed(id, 100), resync(id, 0, 1))
			n.elapsed("resync_required", since, 10*time.Second, 2*late)
			c.send(`{"type":"subscribe","id":1}`)
			c.expect(subscribed("1", 0, 0, 1, 1))
			c.close(codeOf(1000, ""))
		}
		c := n.dial("?resume_from=100")
		since := time.Now()
		c.expect(resumed("null", 100))
		n.script.block(2, account(1, 2, programA)) // 2: may have been seen
		c.expect(resync("null", 0, 2))
		n.elapsed("resync_required", since, 10*time.Second, 2*late)
		n.script.block(3, account(1, 3, programA))
		c.expect(basicFrame(account(1, 3, programA), 3))
	})
}

// A seq that comes within the ten seconds is not asked for again.
func TestASeqThatComesInTime(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(1, account(1, 1, programA))
		c := n.dial("?resume_from=2")
		c.expect(resumed("null", 2))
		time.Sleep(9 * time.Second)
		n.script.block(2, account(1, 2, programA), account(2, 2, programA)) // seq 2 was seen, 3 was not
		c.expect(basicFrame(account(2, 2, programA), 2))
		c.nothingFor(10 * time.Second) // up to the ping
	})
}

func TestAResumeThatCameTrueIsNotTakenBack(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(1, account(1, 1, programA))
		c := n.dial("?extended=true&resume_from=1")
		c.expect(resumed("null", 1), slotEnd(1, 1))
		for range 15 {
			if got := c.next(); !strings.HasPrefix(got, `{"type":"heartbeat"`) {
				n.Fatalf("told %s, want only heartbeats", got)
			}
		}
	})
}

// A client that takes nothing is reset once its socket has refused bytes for five seconds.
func TestASocketThatTakesNothingForFiveSecondsIsReset(t *testing.T) {
	for _, query := range []string{"", "?extended=true&overflow=conflate", "?programs=" + programA.String()} {
		inMemory(t, nil, func(n *node) {
			c := n.dial(query)
			n.script.block(1, account(1, 1, programA))
			since := time.Now() // the frame is being written and nobody reads it
			<-c.near().closed
			n.elapsed("the reset", since, 5*time.Second, late/2)
			if !c.near().wasReset() {
				n.Errorf("%q: the socket was closed, want a reset", query)
			}
			synctest.Wait()
			if got := n.ended(reasonStalled); got != 1 {
				n.Errorf("%q: %d connections counted as stalled, want 1", query, got)
			}
		})
	}
}

// One that takes a byte now and then is given time, and five seconds more after each.
func TestASocketThatTakesAByteNowAndThenIsNotReset(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("")
		n.script.block(1, account(1, 1, programA))
		byteOf := make([]byte, 1)
		for range 10 {
			time.Sleep(4900 * time.Millisecond)
			if _, err := io.ReadFull(c.conn, byteOf); err != nil {
				n.Fatalf("the connection ended with %v", err)
			}
			c.raw(pong("")) // a sign of life
		}
		since := time.Now()
		<-c.near().closed
		n.elapsed("the reset", since, 5*time.Second, late/2)
	})
}

// But not to hold a connection that is to end.
func TestASocketThatTakesAByteNowAndThenDoesNotHoldShutdown(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("")
		n.script.block(1, account(1, 1, programA))
		go func() {
			for err := error(nil); err == nil; time.Sleep(100 * time.Millisecond) {
				_, err = io.ReadFull(c.conn, make([]byte, 1))
			}
		}()
		since := time.Now()
		if err := n.hub.Shutdown(n.Context()); err != nil {
			n.Errorf("Shutdown: %v", err)
		}
		n.elapsed("Shutdown returned", since, 0, late/2)
		if !c.near().wasReset() {
			n.Error("the socket was closed inside a frame, want a reset")
		}
	})
}

// Five seconds is also what a connection that is ending can be held by who reads nothing.
func TestShutdownWaitsForStalledSocketsNoLongerThanTheyMayStall(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		stalled := n.dial("")
		n.script.block(1, account(1, 1, programA))
		since := time.Now()
		if err := n.hub.Shutdown(n.Context()); err != nil {
			n.Errorf("Shutdown: %v", err)
		}
		n.elapsed("Shutdown returned", since, 5*time.Second, late/2)
		if !stalled.near().wasReset() {
			n.Error("the stalled socket was closed, want a reset")
		}
	})
}

// A close frame of the server's is waited for a second to be answered.
func TestTheClosingHandshakeHasASecond(t *testing.T) {
	tests := map[string]struct {
		ends    func(*node, *client) // makes the server close it
		code    uint16
		answers bool
		want    time.Duration
	}{
		"broken, no answer":  {func(_ *node, c *client) { c.raw(frameBytes(finBit|3, "")) }, 1002, false, time.Second},
		"broken, goes away":  {func(_ *node, c *client) { c.raw(frameBytes(finBit|3, "")) }, 1002, true, 0},
		"kicked, no answer":  {func(n *node, _ *client) { go func() { _ = n.hub.Shutdown(context.Background()) }() }, 1001, false, time.Second},
		"kicked, an answer":  {func(n *node, _ *client) { go func() { _ = n.hub.Shutdown(context.Background()) }() }, 1001, true, 0},
		"closed by a client": {func(_ *node, c *client) { c.close(codeOf(1000, "")) }, 1000, false, 0},
	}
	for name, tt := range tests {
		inMemory(t, nil, func(n *node) {
			c := n.dial("?mode=none")
			since := time.Now()
			tt.ends(n, c)
			op, payload, err := c.read()
			if op != frame.Close || !strings.HasPrefix(payload, codeOf(tt.code, "")) || err != nil {
				n.Fatalf("%s: opcode %#x, payload %q, err %v, want a close frame with %d", name, op, payload, err, tt.code)
			}
			if tt.answers {
				c.close(payload[:2])
				if tt.code == frame.CodeProtocol {
					_ = c.conn.Close() // frames are not understood any more, the end of the socket is
				}
			}
			<-c.near().closed
			n.elapsed(name+": the socket was closed", since, tt.want, 0)
		})
	}
}

// Shutdown is done when all have answered, or have had their second, or its context ends.
func TestShutdownDrains(t *testing.T) {
	tests := map[string]struct {
		within  time.Duration // what its context has; 0: forever
		answers bool
		took    time.Duration
		err     error
	}{
		"all answer":       {0, true, 0, nil},
		"nobody answers":   {0, false, time.Second, nil},
		"no time for that": {300 * time.Millisecond, false, 300 * time.Millisecond, context.DeadlineExceeded},
	}
	for name, tt := range tests {
		inMemory(t, nil, func(n *node) {
			ctx := context.Background()
			if tt.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.within)
				defer cancel()
			}
			for _, query := range []string{"", "?mode=none", "?extended=true", "?pubkeys=" + key(1).String()} {
				c := n.dial(query)
				go func() {
					if op, payload, err := c.read(); op != frame.Close || payload != codeOf(1001, "the server is shutting down") || err != nil {
						n.Errorf("%s: opcode %#x, payload %q, err %v, want 1001", name, op, payload, err)
					}
					if tt.answers {
						c.close(codeOf(1001, ""))
					}
				}()
			}
			since := time.Now()
			if err := n.hub.Shutdown(ctx); !errors.Is(err, tt.err) {
				n.Errorf("%s: Shutdown: err = %v, want %v", name, err, tt.err)
			}
			n.elapsed(name+": Shutdown returned", since, tt.took, 0)
			if left := n.leftovers(); left != "" {
				n.Errorf("%s: left are %s", name, left)
			}
		})
	}
}
