package stream

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

func TestFloodsExceedTheBudget(t *testing.T) {
	tests := map[string][]byte{
		"pings":           frameBytes(finBit|byte(frame.Ping), "x"),
		"pongs":           frameBytes(finBit|byte(frame.Pong), ""),
		"messages":        frameBytes(finBit|byte(frame.Text), `{"type":"ping"}`),
		"bad messages":    frameBytes(finBit|byte(frame.Text), `x`),
		"subscribes":      frameBytes(finBit|byte(frame.Text), `{"type":"subscribe","pubkeys":`+list(key(1))+`}`),
		"empty fragments": frameBytes(0, ""),
	}
	for name, sent := range tests {
		t.Run(name, func(t *testing.T) {
			n := serve(t, nil)
			c, other := n.dial("?mode=none"), n.dial("")
			if name == "empty fragments" {
				c.raw(frameBytes(byte(frame.Text), "{"))
			}
			for range 3 * budgetBurst {
				if _, err := c.conn.Write(sent); err != nil {
					break // refused while we still wrote
				}
			}
			if _, code, text := c.endsAndHangsUp(); code != 1008 || text != "too many messages" {
				t.Errorf("ended with %d %q, want 1008 too many messages", code, text)
			}
			n.script.block(1, account(1, 1, programA))
			other.expect(basicFrame(account(1, 1, programA), 1))
		})
	}
}

func TestBudget(t *testing.T) {
	var b bucket
	now := time.Now()
	spend := func() (n int) {
		for b.take(now) {
			n++
		}
		return n
	}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, budgetBurst}, {0, 0}, {time.Second, budgetPerSecond}, {100 * time.Millisecond, 2}, {time.Hour, budgetBurst}} {
		now = now.Add(tt.after)
		if got := spend(); got != tt.want {
			t.Errorf("after %v: %d frames, want %d", tt.after, got, tt.want)
		}
	}
}

// A peer cannot keep a connection that has ended: it goes on sending and is not read.
func TestEndedConnectionsEndHoweverMuchIsSent(t *testing.T) {
	n := serve(t, nil)
	c := n.dial("?mode=none")
	c.raw(frameBytes(finBit|byte(frame.Binary), "x"))
	flood := frameBytes(finBit|byte(frame.Ping), "still here")
	for end := time.Now().Add(patience); ; {
		if _, err := c.conn.Write(flood); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("still written to %v after the end", patience)
		}
	}
	eventually(t, "the connection is gone", func() bool { return n.hub.meters.connections.Get() == 0 })
}

func TestTooManyKeysEndTheConnection(t *testing.T) {
	n := serve(t, nil)
	for _, names := range []string{"pubkeys", "programs"} {
		c := n.dial("?mode=none")
		const batch = 1000
		for i := range maxNames / batch {
			keys := make([]ledger.Pubkey, batch)
			for j := range keys {
				keys[j] = key(i*batch + j)
			}
			c.send(`{"type":"subscribe","%s":%s}`, names, list(keys...))
			c.next()
		}
		c.send(`{"type":"subscribe","id":1,"pubkeys":%s}`, list(key(1)))
		if names == "pubkeys" { // not one more
			c.expect(`{"type":"subscribed","id":1,"pubkeys":10000,"programs":0,"slot":0,"seq":0}`)
			c.send(`{"type":"subscribe","id":1,"pubkeys":%s}`, list(key(maxNames)))
		}
		c.endsWith(1008, "more than 10000 keys")
	}
	n.awaitEmpty()
}

// What clients ask for costs all their connections together, whatever comes of it: names that nobody
// has, programs that are too large, and resumes. A client in debt is disconnected, and gets no new
// budget by coming back.
func TestWorkIsCharged(t *testing.T) {
	unknown := make([]ledger.Pubkey, 1300)
	for i := range unknown {
		unknown[i] = key(i + 1<<21)
	}
	tests := map[string]struct {
		message string
		price   time.Duration // of one message, at least
	}{
		"unknown programs":        {`{"type":"subscribe","snapshot":true,"programs":` + list(unknown...) + `}`, 50 * time.Millisecond},
		"unknown pubkeys":         {`{"type":"subscribe","snapshot":true,"pubkeys":` + list(unknown...) + `}`, 5 * time.Millisecond},
		"a program too large":     {`{"type":"subscribe","snapshot":true,"programs":` + list(programA) + `}`, 20 * time.Millisecond},
		"names without snapshots": {`{"type":"unsubscribe","pubkeys":` + list(unknown...) + `}`, 3 * time.Millisecond},
		"resumes":                 {`{"type":"resume","from_seq":0}`, 2 * time.Millisecond},
	}
	for name, tt := range tests {
		inMemory(t, nil, func(n *node) {
			members := make([]ledger.Account, maxSnapshot+1)
			for i := range members {
				members[i] = account(i, 1, programA)
			}
			n.script.block(1, members...)
			most := int(workBurst/tt.price) + 1
			served, closed := 0, 0
			for closed < 3 { // it comes back at once
				_, c := n.handshake("?mode=none")
				go func() { // at most as fast as a connection may send
					for {
						time.Sleep(time.Second / budgetPerSecond)
						if _, err := c.conn.Write(text(tt.message)); err != nil {
							return
						}
					}
				}()
				for over := false; !over; {
					op, payload, err := c.read()
					switch {
					case err != nil:
						over = true
					case op == frame.Close:
						if payload != codeOf(1008, "too many messages") {
							n.Fatalf("%s: ended with %q, want 1008", name, payload)
						}
						_ = c.conn.Close()
						closed++
						over = true
					case op == frame.Text && !strings.HasPrefix(payload, `{"type":"account_update"`) && !strings.HasPrefix(payload, `{"type":"snapshot_end"`):
						served++
					}
				}
				_ = c.conn.Close()
			}
			if most += int(time.Since(n.hub.started).Seconds()*float64(workPerSecond)/float64(tt.price)) + 3; served > most {
				n.Errorf("%s: %d messages were served, want at most %d", name, served, most)
			}
			n.client = netip.MustParseAddr("192.0.2.2")
			c := n.dial("?mode=none")
			c.send("%s", tests["unknown pubkeys"].message)
			c.expect(subscribed("null", len(unknown), 0, 1, maxSnapshot+1), snapshotEnd("null", 1, maxSnapshot+1))
		})
	}
}

// Many connections of one client that subscribe to as much as they may, with snapshots, are served.
func TestNormalUseIsNotRefused(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	for range 5 {
		c := n.dial("?mode=none")
		for i := range 8 {
			keys := make([]ledger.Pubkey, maxNames/8)
			for k := range keys {
				keys[k] = key(i*len(keys) + k)
			}
			c.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s}`, list(keys...))
			c.expect(subscribed("1", (i+1)*len(keys), 0, 1, 0), snapshotEnd("1", 1, 0))
		}
	}
}

// Resuming on connect is paid for like resuming later.
func TestAResumeOnConnectIsPaidFor(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA))
	place, err := n.hub.seats.take(n.client, false, time.Now())
	if err != nil || !place.work.spend(2*workBurst) {
		t.Fatalf("a new client cannot spend: %v", err)
	}
	n.dial("?resume_from=0").endsWith(1008, "too many messages")
	n.hub.seats.free(place)
}
