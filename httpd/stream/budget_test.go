package stream

import (
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
