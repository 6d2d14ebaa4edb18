package stream

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// G17, F40: a flood of pings, subscribes or anything else ends with 1008 at its budget. A connection may send as many
// frames as that holds, and more at the pace at which it fills. Others go on.
func TestTheBudgetFills(t *testing.T) {
	for name, tt := range map[string]struct {
		sent   []byte
		answer reply
	}{
		"nonsense":    {text("x"), refusal},
		"unsubscribe": {text(`{"type":"unsubscribe","all":true}`), reply{websocket.TextMessage, `{"type":"unsubscribed","id":null,"pubkeys":0,"programs":0}`}},
		"subscribe":   {text(`{"type":"subscribe","pubkeys":` + list(key(1)) + `}`), reply{websocket.TextMessage, subscribed("null", 1, 0, 0, 0)}},
		"ping":        {ping("x"), reply{websocket.PongMessage, "x"}},
	} {
		inMemory(t, nil, func(n *node) {
			c, other := n.dial("?mode=none"), n.dial("")
			for _, step := range []struct {
				after time.Duration
				allow int
			}{{0, budgetBurst}, {10 * time.Second, budgetBurst}, {time.Second, budgetPerSecond}, {100 * time.Millisecond, 2}} {
				time.Sleep(step.after)
				for range step.allow {
					c.raw(tt.sent)
					if op, payload, err := c.read(); err != nil || (reply{op, payload}) != tt.answer {
						n.Fatalf("%s: got %v %q, %v, want %v", name, op, payload, err, tt.answer)
					}
				}
			}
			c.raw(tt.sent)
			if gets, end := c.untilEnd(false); len(gets) > 0 || end != endsRate {
				n.Errorf("%s: ended with %v after %q, want %v", name, end, gets, endsRate)
			}
			n.script.block(1, account(1, 1, programA))
			other.expect(basicFrame(account(1, 1, programA), 1))
		})
	}
}

// F40: many connections of one client that subscribe to as much as they may, with snapshots, in long
// messages that are cut up, are served; one name more ends the connection.
func TestTooManyKeysEndTheConnection(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(1)
		batch := make([]ledger.Pubkey, maxNames/8)
		for range 2 {
			c := n.dial("?mode=none")
			for i := range 8 {
				for k := range batch {
					batch[k] = key(i*len(batch) + k)
				}
				for _, part := range fragments(websocket.TextMessage, (8+i)<<10, `{"type":"subscribe","id":1,"snapshot":true,"pubkeys":`+list(batch...)+`}`) {
					c.raw(part)
				}
				c.expect(subscribed("1", (i+1)*len(batch), 0, 1, 0), snapshotEnd("1", 1, 0))
			}
			c.send(`{"type":"subscribe","id":1,"pubkeys":%s}`, list(key(1))) // not one more
			c.expect(subscribed("1", maxNames, 0, 1, 0))
			c.send(`{"type":"subscribe","id":1,"programs":%s}`, list(key(1)))
			c.endsWith(1008, "more than 10000 keys")
		}
		n.awaitEmpty()
	})
}

// F40: what clients ask for costs all their connections together, whatever comes of it: names that nobody
// has, programs that are too large, and resumes, also on connect. A client in debt is disconnected, and gets no new
// budget by coming back. Others are served meanwhile.
func TestWorkIsCharged(t *testing.T) {
	unknown := list(keysFrom(1<<21, 1300)...)
	for _, tt := range []struct {
		message string
		held    int           // accounts of programA
		price   time.Duration // of one message, at least
	}{
		{`{"type":"subscribe","snapshot":true,"programs":` + unknown + `}`, 1, 50 * time.Millisecond},
		{`{"type":"subscribe","snapshot":true,"pubkeys":` + unknown + `}`, 1, 5 * time.Millisecond},
		{`{"type":"subscribe","snapshot":true,"programs":` + list(programA) + `}`, maxSnapshot + 1, 20 * time.Millisecond}, // too many
		{`{"type":"unsubscribe","pubkeys":` + unknown + `}`, 1, 3 * time.Millisecond},
		{`{"type":"resume","from_seq":0}`, 8000, 2 * time.Millisecond},
	} {
		inMemory(t, nil, func(n *node) {
			n.script.block(1, accounts(0, tt.held, 1)...)
			place := n.budget()
			c := n.dial("?mode=none")
			c.send("%s", tt.message)
			c.settle()
			if spent := workBurst - place.work.left(); spent < tt.price || spent > 4*tt.price {
				n.Errorf("%.60s: it cost %v, want at least %v", tt.message, spent, tt.price)
			}
			place.work.charge(workBurst + workPerSecond)
			c.send("%s", tt.message)
			if gets, end := c.untilClose(); end != endsRate || len(gets) > 0 {
				n.Errorf("%.60s: in debt it ended with %v after %q", tt.message, end, gets)
			}
			n.dial("?resume_from=0").endsWith(1008, "too many messages") // it comes back at once
			n.client.Key = netip.MustParseAddr("192.0.2.2")
			n.dial("?mode=none").quiet()
			if left := place.work.left(); left > 0 {
				n.Errorf("%.60s: a client in debt may spend %v", tt.message, left)
			}
		})
	}
}

// What a client is told instead of what it was too slow for is paid for too: one in debt is a slow consumer like any other.
func TestADigestIsPaidFor(t *testing.T) {
	for query, config := range map[string]func(*Config){
		"?extended=true&overflow=conflate":                               func(c *Config) { c.RingBytes = 256 << 10 },
		"?extended=true&overflow=conflate&programs=" + programA.String(): func(c *Config) { c.OutboxBytes = 256 << 10 },
	} {
		inMemory(t, config, func(n *node) {
			c := n.dial(query)
			place := n.budget()
			place.work.charge(time.Hour)
			n.flood(n.overflown)
			if _, end := c.untilClose(); end.code != codeSlow {
				n.Errorf("%s: ended with %v", query, end)
			}
			ledgertest.Equal(n, place.work.spend(0), false, "%s: whether the debt is gone", query)
		})
	}
}

// An extended socket is told once when a fifth of its client's budget of work is left, before 1008 ends it, and again only when half of it
// had come back; others get the frames of the original interface alone.
func TestLittleWorkIsToldBeforeTheEnd(t *testing.T) {
	for query, want := range map[string][]int{"?mode=none&extended=true": {0, 1, 1, 2}, "?mode=none": {0, 0, 0, 0}} {
		inMemory(t, nil, func(n *node) {
			n.script.block(1)
			c := n.dial(query)
			place := n.budget()
			told := 0
			step := func(spend time.Duration, want int) {
				place.work.charge(spend)
				for _, text := range c.settle() {
					if strings.HasPrefix(text, `{"type":"heartbeat"`) {
						continue
					}
					if told++; text != fmt.Sprintf(`{"type":"warning","reason":"work budget","remaining":%d}`, (workBurst/6).Milliseconds()-1) {
						n.Errorf("%s: told %s", query, text)
					}
				}
				ledgertest.Equal(n, told, want, "%s: warnings", query)
			}
			step(workBurst/2, want[0])
			step(workBurst/3, want[1])
			step(0, want[2])
			place.work.mu.Lock()
			place.work.full = time.Now() // as after a time without work
			place.work.mu.Unlock()
			step(0, want[2])
			step(workBurst*5/6, want[3])
			place.work.charge(workBurst)
			c.send(`{"type":"ping"}`)
			if _, end := c.untilClose(); end != endsRate {
				n.Errorf("%s: ended with %v", query, end)
			}
		})
	}
}
