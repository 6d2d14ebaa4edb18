package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/stream/frame"
)

// F48: five seconds is also what a connection that is ending can be held by who reads nothing, and by who takes a byte now and then. Who takes
// the rest of the frame within that time gets 1001: after what was published before, or what it took of that in a second.
func TestShutdownWaitsForSlowSocketsNoLongerThanTheyMayStall(t *testing.T) {
	for name, tt := range map[string]struct {
		blocks, bytes int // bytes that it reads each tenth of a second
		want          time.Duration
		told          bool
	}{
		"reads nothing":       {1, 0, 5 * time.Second, false},
		"a byte now and then": {1, 1, 5 * time.Second, false},
		"reads slowly":        {1, 100, closeWait, true}, // and does not answer
		"has much to read":    {3000, 6400, closeWait + drainTime, true},
	} {
		inMemory(t, nil, func(n *node) {
			c := n.dial("")
			n.script.blocks(ledger.Slot(tt.blocks))
			var read bytes.Buffer
			var reading sync.WaitGroup
			reading.Go(func() {
				for err := error(nil); tt.bytes > 0 && err == nil; time.Sleep(100 * time.Millisecond) {
					_, err = io.CopyN(&read, c.conn, int64(tt.bytes))
				}
			})
			since := time.Now()
			must(n, n.hub.Shutdown(n.Context()))
			n.elapsed(name+": Shutdown returned", since, tt.want, late)
			ledgertest.Equal(n, c.near().resets.Load(), !tt.told, "%s: whether the end was a reset", name)
			reading.Wait()
			said := bytes.HasSuffix(read.Bytes(), frame.AppendClose(nil, endShutdown.code, endShutdown.text))
			ledgertest.Equal(n, said, tt.told, "%s: whether it was told", name)
		})
	}
}

// A close frame of the server's is waited for a second to be answered.
func TestTheClosingHandshakeHasASecond(t *testing.T) {
	broken, closed := frameBytes(finBit|3, ""), closeOf(codeOf(1000, ""))
	for name, tt := range map[string]struct {
		sent     []byte // makes the server close it
		code     uint16
		goesAway bool
		want     time.Duration
	}{
		"broken, no answer":  {broken, 1002, false, time.Second},
		"broken, goes away":  {broken, 1002, true, 0},
		"closed by a client": {closed, 1000, false, 0},
	} {
		inMemory(t, nil, func(n *node) {
			c := n.dial("?mode=none")
			since := time.Now()
			c.raw(tt.sent)
			_, end := c.untilClose()
			ledgertest.Equal(n, end.code, tt.code, "%s: the close code", name)
			if tt.goesAway {
				c.close(codeOf(tt.code, ""))
				_ = c.conn.Close() // frames are not understood any more, the end of the socket is
			}
			<-c.near().closed
			n.elapsed(name+": the socket was closed", since, tt.want, 0)
		})
	}
}

// G4, F48: shutdown sends everybody what was published before and then its close frame. It is done when all have
// answered, or have had their second, or its context ends. A client that comes later is turned away too.
func TestShutdownDrains(t *testing.T) {
	answer := func(c *client) { c.close(codeOf(1001, "")) }
	silence := func(*client) {}
	// Its frames stay within the budget, and none of them is an answer.
	talk := func(c *client) {
		for err := error(nil); err == nil; time.Sleep(time.Second / budgetPerSecond) {
			_, err = c.conn.Write(ping(""))
		}
	}
	for name, tt := range map[string]struct {
		within time.Duration // what its context has; 0: an hour
		then   func(*client)
		took   time.Duration
		err    error
	}{
		"all answer":       {0, answer, 0, nil},
		"nobody answers":   {0, silence, time.Second, nil},
		"all go on":        {0, talk, time.Second, nil},
		"no time for that": {300 * time.Millisecond, silence, 300 * time.Millisecond, context.DeadlineExceeded},
	} {
		inMemory(t, nil, func(n *node) {
			ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(tt.within, time.Hour))
			defer cancel()
			var clients []*client
			for query, told := range map[string]int{
				"": 2, "?mode=none": 0, "?extended=true": 4, "?commitment=finalized": 1, "?pubkeys=" + key(1).String(): 2,
			} {
				c := n.dial(query)
				clients = append(clients, c)
				go func() {
					if gets, end := c.untilClose(); len(gets) != told || end != endsByShutdown {
						n.Errorf("%s: %q: ended with %v after %q, want 1001 after %d frames", name, query, end, gets, told)
					}
					tt.then(c)
				}()
			}
			n.script.blocks(2)
			since := time.Now()
			if err := n.hub.Shutdown(ctx); !errors.Is(err, tt.err) {
				n.Errorf("%s: Shutdown: err = %v, want %v", name, err, tt.err)
			}
			n.elapsed(name+": Shutdown returned", since, tt.took, 0)
			ledgertest.Equal(n, n.leftovers(), "", "%s: what is left", name)
			for _, c := range clients {
				ledgertest.Equal(n, c.near().resets.Load(), false, "%s: whether the end of one that was told was a reset", name)
			}
			_, late := n.handshake("")
			if gets, end := late.untilClose(); len(gets) > 0 || end != endsByShutdown {
				n.Errorf("%s: a late client: ended with %v after %q, want 1001", name, end, gets)
			}
			_ = late.conn.Close()
			n.script.block(3, account(1, 3, programA)) // which nobody receives
		})
	}
}

// faultyHistory has a fault that shows while a connection is taken in.
type faultyHistory struct{ History }

func (faultyHistory) Oldest() ledger.Seq { panic("a fault") }

// G6, F45: what a client says on a connection that is about to end changes nothing: where a fault ended it
// before it was one of the hub's, its names would stay in the index for ever.
func TestPanicsWhileJoiningLeaveNothing(t *testing.T) {
	const times = 20
	log, said := newLog()
	inMemory(t, func(c *Config) { c.Logger, c.History = log, faultyHistory{} }, func(n *node) {
		for range times {
			c := n.dial("?extended=true&resume_from=1")
			c.send(`{"type":"subscribe","pubkeys":%s}`, list(key(1)))
			c.send(`{"type":"subscribe","extended":true}`)
			c.endsWith(websocket.CloseInternalServerErr, endInternal.text)
		}
		n.wantMetric("ledgerd_ws_panics_total %d", times)
		if !strings.Contains(said.String(), "panic in a WebSocket connection") || !strings.Contains(said.String(), "a fault") {
			n.Errorf("the log says %q", said)
		}
		n.awaitEmpty()
		n.wantMetric(`ledgerd_ws_subscribers{wants="keys"} 0`)
		n.wantMetric(`ledgerd_ws_subscribers{wants="everything"} 0`)
	})
}

// F48: a handshake whose answer nobody reads does not hold up a stop: the server, which has the connection still, ends it afterwards.
func TestShutdownDoesNotWaitForAnUnreadHandshake(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		s := joined(n.hub, query{})
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		since := time.Now()
		ledgertest.ErrorIs(n, n.hub.Shutdown(ctx), context.DeadlineExceeded, "Shutdown")
		n.elapsed("Shutdown returned", since, 300*time.Millisecond+cutTime, 0)
		s.depart() // as the server says of a connection that ended so
	})
}
