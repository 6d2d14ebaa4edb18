package stream

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/stream/frame"
)

// client is one connection, seen from the other side: it takes nothing but whole frames
// that a server may send.
type client struct {
	testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// Bits of a frame's header.
const finBit, reservedBits, maskBit = 0x80, 0x70, 0x80

// The key of a handshake and the answer to it, as RFC 6455 has them in section 1.3.
const nonce, accepted = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

// requestOf returns an upgrade request. A header of "Upgrade: no" leaves out all that make it one.
func requestOf(query string, headers ...string) []byte {
	head := "GET /api/ws/accounts" + query + " HTTP/1.1\r\nHost: ledger\r\n"
	if !slices.Contains(headers, "Upgrade: no") {
		head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + nonce + "\r\n"
	}
	for _, h := range headers {
		head += h + "\r\n"
	}
	return []byte(head + "\r\n")
}

// open makes a connection on which nothing was sent yet.
func (n *node) open() *client {
	n.Helper()
	conn, err := n.connect()
	must(n, err)
	n.Cleanup(func() { _ = conn.Close() })
	return &client{TB: n.TB, conn: conn, r: bufio.NewReader(conn)}
}

// handshake sends an upgrade request on a connection of its own and reads the answer.
func (n *node) handshake(query string, headers ...string) (*http.Response, *client) {
	n.Helper()
	c := n.open()
	c.raw(requestOf(query, headers...))
	response, err := http.ReadResponse(c.r, nil)
	must(n, err)
	if response.StatusCode != http.StatusSwitchingProtocols {
		return response, c
	}
	ledgertest.Equal(n, response.Header.Get("Sec-WebSocket-Accept"), accepted, "Sec-WebSocket-Accept")
	ledgertest.Equal(n, response.Header.Values("Sec-WebSocket-Extensions"), nil, "the extensions that were negotiated")
	return response, c
}

// dial makes a subscriber.
func (n *node) dial(query string, headers ...string) *client {
	n.Helper()
	response, c := n.handshake(query, headers...)
	if response.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(response.Body)
		n.Fatalf("handshake %q: %s %s", query, response.Status, body)
	}
	return c
}

// frameBytes returns a frame as a client sends it, masked.
func frameBytes(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, maskBit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, maskBit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, maskBit|127), uint64(n))
	}
	mask := [4]byte{0x1d, 0xc7, 0x05, 0xe9}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i&3])
	}
	return b
}

func (c *client) raw(b []byte) {
	c.Helper()
	_, err := c.conn.Write(b)
	must(c, err)
}

func (c *client) send(format string, args ...any) {
	c.Helper()
	c.raw(frameBytes(finBit|byte(websocket.TextMessage), fmt.Sprintf(format, args...)))
}

// close sends a close frame.
func (c *client) close(payload string) {
	c.Helper()
	c.raw(frameBytes(finBit|byte(websocket.CloseMessage), payload))
}

// updatesRead counts updates: one of sixteen is checked against the document.
var updatesRead atomic.Int64

// read returns the next frame. That it is one a server may send, as the document of the messages says, is checked.
func (c *client) read() (frame.Opcode, string, error) {
	c.Helper()
	var head [8]byte
	if _, err := io.ReadFull(c.r, head[:2]); err != nil {
		return 0, "", err
	}
	first, length := head[0], uint64(head[1])
	op := frame.Opcode(first & 0xf)
	switch {
	case first&finBit == 0 || first&reservedBits != 0:
		c.Fatalf("frame begins with %#x, want FIN and no reserved bits", first)
	case length&maskBit != 0:
		c.Fatal("a frame is masked")
	case op != websocket.TextMessage && op != websocket.CloseMessage && op != websocket.PingMessage && op != websocket.PongMessage:
		c.Fatalf("opcode %#x", op)
	}
	switch length {
	case 126:
		if _, err := io.ReadFull(c.r, head[:2]); err != nil {
			return 0, "", err
		}
		if length = uint64(binary.BigEndian.Uint16(head[:])); length < 126 {
			c.Fatalf("length %d is not in its shortest form", length)
		}
	case 127:
		if _, err := io.ReadFull(c.r, head[:8]); err != nil {
			return 0, "", err
		}
		if length = binary.BigEndian.Uint64(head[:]); length < 1<<16 || length > 16<<20 {
			c.Fatalf("a frame of %d bytes, which no data takes", length)
		}
	}
	if op.IsControl() && length > 125 {
		c.Fatalf("control frame of %d bytes", length)
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(c.r, payload); err != nil {
		return 0, "", fmt.Errorf("inside a frame: %w", err)
	}
	if length >= 1<<16 && !bytes.Contains(payload, []byte(`,"data":"`)) {
		c.Fatal("a frame of 64 KiB or more without data")
	}
	if op == websocket.TextMessage && (!utf8.Valid(payload) || !json.Valid(payload)) {
		c.Fatalf("message is no JSON: %q", payload)
	}
	if op == websocket.TextMessage && (!bytes.HasPrefix(payload, []byte(`{"type":"account_update"`)) || updatesRead.Add(1)%16 == 1) {
		checkDescribed(c, string(payload))
	}
	return op, string(payload), nil
}

// next returns the next message.
func (c *client) next() string {
	c.Helper()
	op, payload, err := c.read()
	if err != nil || op != websocket.TextMessage {
		c.Fatalf("got opcode %#x, payload %q, err %v, want a message", op, payload, err)
	}
	return payload
}

// expect reads exactly these messages.
func (c *client) expect(want ...string) {
	c.Helper()
	for i, w := range want {
		if got := c.next(); got != w {
			c.Fatalf("message %d:\n got %s\nwant %s", i, got, w)
		}
	}
}

// settle asks for a pong and returns what came before it. All that is told was told in
// order, so nothing more is under way.
func (c *client) settle() (before []string) {
	c.Helper()
	c.send(`{"type":"ping","id":"settle"}`)
	for {
		got := c.next()
		if strings.HasPrefix(got, `{"type":"pong","id":"settle",`) {
			return before
		}
		before = append(before, got)
	}
}

// untilEnd reads up to the close frame, which must be one that a server may send, and sees the socket end, without an answer.
func (c *client) untilEnd() (end ending) {
	c.Helper()
	op, payload, err := c.read()
	for err == nil && op != websocket.CloseMessage {
		op, payload, err = c.read()
	}
	switch {
	case err != nil:
		c.Fatalf("the connection ended without a close frame: %v", err)
	case len(payload) < 2 || !maySend(binary.BigEndian.Uint16([]byte(payload))) || !utf8.ValidString(payload[2:]):
		c.Fatalf("close frame %q", payload)
	}
	end = ending{binary.BigEndian.Uint16([]byte(payload)), payload[2:]}
	_, _, err = c.read()
	ledgertest.ErrorIs(c, err, io.EOF, "after the close frame")
	return end
}

// told is a frame as a client reads it: the fields of all kinds there are.
type told struct {
	Type, Pubkey, Owner string
	Token               struct{ Owner string }
	Lamports            ledger.Lamports
	Slot                ledger.Slot
	Seq                 ledger.Seq
	ToSlot              ledger.Slot `json:"to_slot"`
	From                ledger.Seq  `json:"from_seq"`
	To                  ledger.Seq  `json:"to_seq"`
	Oldest              ledger.Seq  `json:"oldest_seq"`
	Newest              ledger.Seq  `json:"newest_seq"`

	text string
}

func parse(t testing.TB, text string) told {
	t.Helper()
	f := told{text: text}
	must(t, json.Unmarshal([]byte(text), &f))
	return f
}
