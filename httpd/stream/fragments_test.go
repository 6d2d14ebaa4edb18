package stream

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestFragmentsMakeAMessage(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	message := `{"type":"subscribe","id":"` + "ä€𝄞" + `","pubkeys":` + list(key(1)) + `}`
	want := `{"type":"subscribed","id":"ä€𝄞","pubkeys":1,"programs":0,"slot":1,"seq":0}`
	for _, size := range []int{1 << 20, 100, 33, 7, 5} {
		var sent []byte
		for first, rest := byte(opText), message; rest != ""; first = 0 {
			n := min(size, len(rest))
			if n == len(rest) {
				first |= finBit
			}
			sent = append(sent, frameBytes(first, rest[:n])...)
			rest = rest[n:]
		}
		c := n.dial("?mode=none")
		c.raw(sent)
		c.expect(want)
	}
	// Empty fragments, control frames between, and a socket that brings every byte alone.
	c := n.dial("?mode=none")
	sent := append(frameBytes(byte(opText), ""), frameBytes(finBit|byte(opPing), "between")...)
	sent = append(append(sent, frameBytes(0, message[:50])...), frameBytes(finBit|byte(opPong), "")...)
	sent = append(append(sent, frameBytes(0, "")...), frameBytes(finBit, message[50:])...)
	for i := range sent {
		c.raw(sent[i : i+1])
	}
	if op, payload, err := c.read(); op != opPong || payload != "between" || err != nil {
		t.Errorf("opcode %#x, payload %q, err %v, want the pong", op, payload, err)
	}
	c.expect(want)
}

func TestTheLargestMessage(t *testing.T) {
	n := serve(t, nil)
	c := n.dial("?mode=none")
	message := `{"type":"unsubscribe","id":7,"all":true}`
	c.send("%s", message+strings.Repeat(" ", maxMessageBytes-len(message)))
	c.expect(`{"type":"unsubscribed","id":7,"pubkeys":0,"programs":0}`)
	c.quiet() // the limit is one of each message, not of all
	c.send("%s", message+strings.Repeat(" ", maxMessageBytes-len(message)))
	c.expect(`{"type":"unsubscribed","id":7,"pubkeys":0,"programs":0}`)
}

// eager makes a connection whose client sends pieces right behind its handshake, the first of
// them in one with it, and does not wait for the answer. sent is closed when all are written.
func (n *node) eager(query string, pieces [][]byte) (c *client, sent <-chan struct{}) {
	n.Helper()
	conn, err := n.connect()
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = conn.Close() })
	request := "GET /api/ws/accounts" + query + " HTTP/1.1\r\nHost: ledger\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + nonce + "\r\n\r\n"
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i, p := range pieces {
			if i == 0 {
				p = append([]byte(request), p...)
			}
			if _, err := conn.Write(p); err != nil {
				return // the end came in the middle of it
			}
		}
	}()
	c = &client{TB: n.TB, conn: conn, r: bufio.NewReader(conn)}
	response, err := http.ReadResponse(c.r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		n.Fatalf("handshake %q: response %v, err %v", query, response, err)
	}
	return c, writing
}

// What a client sends in one piece with its handshake is heard from the first byte on,
// wherever the piece ends.
func TestFramesBehindTheHandshakeAreHeard(t *testing.T) {
	behind := bytes.Join([][]byte{ping("first"), text(`{"type":"unsubscribe","id":1,"all":true}`), text(repeat(3000)), closeOf("")}, nil)
	n := serve(t, nil)
	for _, cut := range []int{len(behind), len(behind) - 1, 3001, 2000, 513, 512, 511, 12, 11, 10, 1, 0} {
		c, sent := n.eager("?mode=none", each(behind[:cut], behind[cut:]))
		if op, payload, err := c.read(); op != opPong || payload != "first" || err != nil {
			t.Errorf("cut after %d: opcode %#x, payload %q, err %v, want the pong", cut, op, payload, err)
		}
		<-sent
		c.closed = true
		before, code, _ := c.ends()
		want := []string{`{"type":"unsubscribed","id":1,"pubkeys":0,"programs":0}`, refusal.payload}
		if !slices.Equal(before, want) || code != 1000 {
			t.Errorf("cut after %d: told %q and %d, want %q and 1000", cut, before, code, want)
		}
	}
}
