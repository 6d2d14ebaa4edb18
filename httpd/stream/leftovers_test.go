package stream

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
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
	count("connections", len(n.hub.connections))
	count("topics", len(n.hub.topics))
	for i := range n.hub.levels {
		a := &n.hub.levels[i]
		count("that are walked", len(a.walked))
		count("topics of the level", len(a.topics.blocks.list)+len(a.topics.signatures))
		count("pubkeys in the index", len(a.indexes[pubkeys]))
		count("programs in the index", len(a.indexes[programs]))
		count("wallets in the index", len(a.indexes[wallets]))
		count("rings", len(a.rings))
	}
	n.hub.seats.mu.Lock()
	defer n.hub.seats.mu.Unlock()
	count("seats", n.hub.seats.taken)
	for _, c := range n.hub.seats.clients { // those that have work to pay for stay for a while
		count("connections of a client", c.conns)
	}
	count("that want tokens", len(n.hub.tokens))
	count("bytes that wait", int(n.hub.memory.Used()))
	return strings.Join(held, ", ")
}

// awaitEmpty waits until the hub holds nothing for connections.
func (n *node) awaitEmpty() {
	n.Helper()
	eventually(n, "the hub holds nothing", func() bool { return n.leftovers() == "" })
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

// G4, F31: however clients end connections, nothing of them stays while the node runs: no subscriber, name,
// ring, seat or socket. What the hub holds is looked for after every test, and goroutines after all of them.
func TestEndedConnectionsLeaveNothing(t *testing.T) {
	queries := []string{
		"", "?extended=true", "?mode=none", "?commitment=finalized&overflow=conflate", "?extended=true&programs=" + programA.String(),
		"?pubkeys=" + key(1).String() + "," + key(2).String(), "?resume_from=0", "?extended=true&resume_from=1000000000",
		"?extended=true&tokens=true&wallets=" + key(1).String(),
	}
	reset := func(c *client) {
		must(c, c.conn.(*net.TCPConn).SetLinger(0))
		_ = c.conn.Close()
	}
	endings := map[string]func(*client){
		"closed": func(c *client) {
			c.close(codeOf(1000, ""))
			ledgertest.Equal(c, c.untilEnd(), ending{code: 1000}, "the end")
		},
		"gone":           func(c *client) { _ = c.conn.Close() },
		"reset":          reset,
		"reset midframe": func(c *client) { c.raw(text(`{"type":"ping"}`)[:9]); reset(c) },
		"reset at once after a snapshot": func(c *client) {
			c.send(`{"type":"subscribe","snapshot":true,"programs":%s}`, list(programA))
			reset(c)
		},
	}
	const rounds = 3
	before := sockets(t)
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			n := newNode(t, nil)
			n.connect = func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }
			n.start(ln)
			for round := range rounds {
				var clients []*client
				for _, q := range queries {
					clients = append(clients, n.dial(q))
				}
				n.script.block(n.script.nextSlot(), account(1, ledger.Lamports(round+1), programA), account(2, 1, programB))
				for _, c := range clients {
					end(c)
				}
			}
			n.awaitEmpty()
			reason := map[bool]string{true: "client", false: "gone"}[name == "closed"]
			n.wantMetric("ledgerd_ws_closed_total{reason=%q} %d", reason, rounds*len(queries))
		})
	}
	eventually(t, "all sockets are closed", func() bool { return sockets(t) <= before })
}

// metrics returns all lines of the metrics.
func (n *node) metrics() string {
	var text strings.Builder
	n.hub.config.Metrics.WritePrometheus(&text)
	return text.String()
}

func (n *node) wantMetric(format string, args ...any) {
	n.Helper()
	if line := fmt.Sprintf(format, args...); !strings.Contains(n.metrics(), line+"\n") {
		n.Errorf("no %s in\n%s", line, n.metrics())
	}
}
