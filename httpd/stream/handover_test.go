package stream

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// What a client sends in one piece with its handshake is heard, wherever the piece ends.
func TestWhatComesWithTheHandshakeIsHeard(t *testing.T) {
	head := "GET /api/ws/accounts?mode=none HTTP/1.1\r\nHost: ledger\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + nonce + "\r\n\r\n"
	long := strings.Repeat(" ", 3*earlyBytes)
	frames := string(frameBytes(finBit|byte(opText), `{"type":"subscribe","id":1,"pubkeys":`+list(key(1))+`}`)) +
		string(frameBytes(finBit|byte(opText), `{"type":"unsubscribe","id":2,`+long+`"all":true}`))
	n := serve(t, nil)
	for _, early := range []int{1, 2, 50, len(frames) - 1, len(frames)} {
		conn, err := n.connect()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, head+frames[:early]); err != nil {
			t.Fatal(err)
		}
		c := &client{TB: t, conn: conn, r: bufio.NewReader(conn)}
		if response, err := http.ReadResponse(c.r, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("handshake: %v, %v", response, err)
		}
		c.raw([]byte(frames[early:]))
		c.expect(`{"type":"subscribed","id":1,"pubkeys":1,"programs":0,"slot":0,"seq":0}`, `{"type":"unsubscribed","id":2,"pubkeys":0,"programs":0}`)
		c.quiet()
		_ = conn.Close()
	}
	n.awaitEmpty()
}

// faultyHistory has a fault that shows while a connection is taken in.
type faultyHistory struct{ History }

func (faultyHistory) Oldest() ledger.Seq { panic("a fault") }

func TestAPanicWhileJoiningEndsOnlyTheConnection(t *testing.T) {
	n := serve(t, func(c *Config) { c.History = faultyHistory{} })
	n.script.block(1, account(1, 1, programA))
	c := n.dial("?extended=true&resume_from=1")
	c.endsWith(closeInternal, endInternal.text)
	n.awaitEmpty()
	if got := n.hub.meters.panics.Get(); got != 1 {
		t.Errorf("%d panics counted, want 1", got)
	}
	other := n.dial("")
	n.script.block(2, account(1, 2, programA))
	other.expect(literalFrame(account(1, 2, programA), 2))
}
