package stream

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
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

// F32: who says nothing is pinged and let go after a minute, also where blocks come all the time and the
// frames are taken: that is no sign of life.
func TestSilenceEndsTheConnectionAfterAMinute(t *testing.T) {
	for _, tt := range []struct {
		query          string
		beats, updates int // in a minute, about
	}{
		{"?mode=none", 0, 0},
		{"", 0, 600},
		{"?extended=true&pubkeys=" + key(1).String(), 60, 600},
	} {
		inMemory(t, nil, func(n *node) {
			c := n.dial(tt.query)
			since := time.Now()
			var over atomic.Bool
			go func() {
				for ; !over.Load(); time.Sleep(100 * time.Millisecond) {
					n.script.block(n.script.nextSlot(), account(1, ledger.Lamports(n.script.nextSlot()), programA))
				}
			}()
			count := map[string]int{}
			op, payload := frame.Opcode(websocket.TextMessage), ""
			for op != websocket.CloseMessage {
				var err error
				op, payload, err = c.read()
				must(n, err)
				kind, _, _ := strings.Cut(payload, `",`)
				count[kind]++
			}
			over.Store(true)
			ledgertest.Equal(n, payload, codeOf(1008, "no sign of life"), "%q: the close frame", tt.query)
			n.elapsed("the end", since, time.Minute, late)
			_, _, err := c.read()
			ledgertest.Equal(n, err, io.EOF, "%q: after the close frame", tt.query)
			pings, beats, updates := count[""], count[`{"type":"heartbeat`], count[`{"type":"account_update`]
			if pings < 2 || pings > 3 || beats < tt.beats-2 || beats > tt.beats+1 || updates < tt.updates-20 || updates > tt.updates+20 {
				n.Errorf("%q: %d pings, %d heartbeats, %d updates in a minute, want 2 or 3, %d, and %d", tt.query, pings, beats, updates, tt.beats, tt.updates)
			}
		})
	}
}

// G5, G17, F31: a client that takes nothing is reset once its socket has refused bytes for five seconds.
func TestASocketThatTakesNothingForFiveSecondsIsReset(t *testing.T) {
	const untilThePing = 20 * time.Second // which is the first thing that a client without names is sent
	for query, before := range map[string]time.Duration{
		"": 0, "?extended=true&overflow=conflate": 0, "?programs=" + programA.String(): 0, "?mode=none": untilThePing,
	} {
		inMemory(t, nil, func(n *node) {
			c := n.dial(query)
			n.script.block(1, account(1, 1, programA))
			since := time.Now() // the frame is being written and nobody reads it
			<-c.near().closed
			n.elapsed(query+": the reset", since, before+5*time.Second, late)
			ledgertest.Equal(n, c.near().resets.Load(), true, "%q: whether the end was a reset", query)
			synctest.Wait()
			ledgertest.Equal(n, n.ended(endStalled.reason), 1, "%q: connections counted as stalled", query)
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
			_, err := io.ReadFull(c.conn, byteOf)
			must(n, err)
			c.raw(pong("")) // a sign of life
		}
		since := time.Now()
		<-c.near().closed
		n.elapsed("the reset", since, 5*time.Second, late/2)
	})
}
