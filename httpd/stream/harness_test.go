package stream

import (
	"context"
	"io"
	"log"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/httpdtest"
	"ledgerd/httpd/ratelimit"
)

var must, readFile = ledgertest.Must, ledgertest.ReadFile

// patience bounds how long a test waits for what must happen, and how long its connections may be
// open, on a machine as busy as may be. It decides only when a test fails, never whether one passes.
const patience = 2 * time.Minute

// node is a hub behind a real server, on a real socket or in memory.
type node struct {
	testing.TB
	hub    *Hub
	ledger *fakeLedger
	script *script

	connect func() (net.Conn, error)
	client  ratelimit.Client      // of every connection
	talk    func(*Socket, []byte) // answers what sockets say; nil: they are subscribers
}

// newNode returns a node that is not served yet.
func newNode(t testing.TB, change func(*Config)) *node {
	n := &node{TB: t, ledger: newFakeLedger(), client: ratelimit.Client{Key: netip.MustParseAddr("192.0.2.1")}}
	n.ledger.mints = knownMints
	config := Config{Ledger: n.ledger}
	if change != nil {
		change(&config)
	}
	n.hub = New(config)
	n.hub.SetCaps(defaultConns, defaultConns)
	n.script = newScript(n.hub, n.ledger)
	n.script.history, _ = config.History.(*fakeHistory) // which the script writes
	return n
}

// budget returns a seat of the client's, by which its budget of work is seen and spent.
func (n *node) budget() *seat {
	n.Helper()
	place, why := n.hub.seats.take(n.client)
	ledgertest.Equal(n, why, nil, "why there is no seat")
	n.Cleanup(place.free)
	return place
}

// joined makes a subscriber without a socket, of a client of its own.
func joined(h *Hub, asked request) *subscriber {
	return h.join(asked, &seat{newPeer(ratelimit.Client{}), func() {}})
}

// drain takes all that waits, and returns how many frames that is.
func (o *outbox) drain() (frames int) {
	for {
		t := o.take(0)
		if t.room != nil {
			freeBatch(o.memory, t.room)
		}
		if frames += t.frames; t.frames == 0 && t.run == nil {
			return frames
		}
	}
}

// start serves what the listener accepts until the test is over.
func (n *node) start(ln net.Listener) {
	server := &fasthttp.Server{
		KeepHijackedConns: true, Logger: log.New(io.Discard, "", 0),
		Handler: func(ctx *fasthttp.RequestCtx) {
			upgrade := n.hub.Upgrade
			if n.talk != nil {
				upgrade = func(ctx *fasthttp.RequestCtx, client ratelimit.Client) error {
					return n.hub.Accept(ctx, client, n.talk)
				}
			}
			if err := upgrade(ctx, n.client); err != nil {
				ctx.Error(err.Error(), err.(*rejection).HTTPStatus())
			}
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	n.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must(n, n.hub.Shutdown(ctx))
		must(n, server.ShutdownWithContext(ctx))
		_ = ln.Close() // a server that had not begun to serve leaves it open, and Serve would wait for ever
		must(n, <-served)
		n.awaitEmpty() // however the connections of the test ended
	})
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not after %v: %s", patience, what)
		}
	}
}

// TestMain fails if anything still runs after the tests.
func TestMain(m *testing.M) { httpdtest.Main(m) }
