package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// What a client of the protocol sends and gets. What breaks the protocol is tested by FuzzClient, with
// the case list of the Autobahn test suite.

// reply is a frame of the server's.
type reply struct {
	op      frame.Opcode
	payload string
}

// ending is the close frame that a connection comes to.
type ending struct {
	code uint16
	text string
}

var (
	endsReserved    = ending{1002, "reserved bits are set"}
	endsUnmasked    = ending{1002, "frames from a client must be masked"}
	endsOpcode      = ending{1002, "unknown opcode"}
	endsLongControl = ending{1002, "control frames carry at most 125 bytes"}
	endsCutControl  = ending{1002, "control frames must not be fragmented"}
	endsOrder       = ending{1002, "a message begins or goes on where it must not"}
	endsHalfCode    = ending{1002, "a close code has two bytes"}
	endsBadCode     = ending{1002, "invalid close code"}
	endsBinary      = ending{1003, "only text messages are understood"}
	endsUTF8        = ending{1007, "text must be valid UTF-8"}
	endsRate        = ending{1008, "too many messages"}
	endsTooBig      = ending{1009, "a message may have at most 65536 bytes"}
	endsSilent      = ending{1008, "no sign of life"}
	endsNormally    = ending{1000, ""}
	endsByShutdown  = ending{1001, "the server is shutting down"}
)

// refusal answers a text message that is none of ours.
var refusal = reply{websocket.TextMessage, `{"type":"error","id":null,"error":"Invalid request parameters",` +
	`"details":"a message is a JSON object with a type of subscribe, unsubscribe, resume or ping"}`}

// What clients send.
func text(payload string) []byte  { return frameBytes(finBit|byte(websocket.TextMessage), payload) }
func begun(payload string) []byte { return frameBytes(byte(websocket.TextMessage), payload) }
func more(payload string) []byte  { return frameBytes(byte(frame.Continuation), payload) }
func last(payload string) []byte  { return frameBytes(finBit|byte(frame.Continuation), payload) }
func binaryOf(payload string) []byte {
	return frameBytes(finBit|byte(websocket.BinaryMessage), payload)
}
func ping(payload string) []byte { return frameBytes(finBit|byte(websocket.PingMessage), payload) }
func pong(payload string) []byte { return frameBytes(finBit|byte(websocket.PongMessage), payload) }

func closeOf(payload string) []byte { return frameBytes(finBit|byte(websocket.CloseMessage), payload) }

// codeOf returns the payload of a close frame.
func codeOf(code uint16, reason string) string {
	return string(binary.BigEndian.AppendUint16(nil, code)) + reason
}

// fragments cuts a message into frames.
func fragments(op frame.Opcode, size int, payload string) (frames [][]byte) {
	for first := byte(op); ; first = byte(frame.Continuation) {
		if len(payload) <= size {
			return append(frames, frameBytes(finBit|first, payload))
		}
		frames = append(frames, frameBytes(first, payload[:size]))
		payload = payload[size:]
	}
}

// chopped writes frames in pieces of so many octets.
func chopped(octets int, frames ...[]byte) [][]byte {
	return slices.Collect(slices.Chunk(bytes.Join(frames, nil), octets))
}

// repeat returns a payload of so many bytes, each a character.
func repeat(n int) string { return strings.Repeat("*", n) }

// nothingFor sees that nothing comes for a time.
func (c *client) nothingFor(d time.Duration) {
	c.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.Fatal(err)
	}
	if op, payload, err := c.read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("opcode %#x, payload %q, err %v came within %v, want nothing", op, payload, err, d)
	}
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		c.Fatal(err)
	}
}

// Cases 5.19 and 5.20: the first ping is answered while the message is still under way.
func TestPingsAreAnsweredWithinAMessage(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?mode=none")
		expectPong := func(want string, sent ...[]byte) {
			for _, piece := range sent {
				c.raw(piece)
			}
			if op, got, err := c.read(); op != websocket.PongMessage || got != want || err != nil {
				n.Fatalf("opcode %#x, payload %q, err %v, want a pong of %q", op, got, err, want)
			}
		}
		expectPong("first", begun(`{"type":"unsub`), more(`scribe",`), ping("first"))
		expectPong("second", more(`"id":1,`), more(`"all":`), ping("second"))
		c.raw(last(`true}`))
		c.expect(`{"type":"unsubscribed","id":1,"pubkeys":0,"programs":0}`)
	})
}

// Group 12: whatever compression a client offers, none is negotiated, and a compressed frame
// is one with a reserved bit. So nothing that a client sends grows here.
func TestCompressionIsNeverNegotiated(t *testing.T) {
	offers := []string{
		"permessage-deflate",
		"permessage-deflate; client_no_context_takeover; client_max_window_bits",
		"permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
		"permessage-deflate; server_no_context_takeover; server_max_window_bits=15, permessage-deflate",
		"permessage-deflate; client_max_window_bits, x-webkit-deflate-frame",
		"permessage-bzip2, permessage-snappy",
	}
	n := serve(t, nil)
	for i, offer := range offers {
		// dial fails on any extension in the answer.
		c := n.dial("", "Sec-WebSocket-Extensions: "+offer)
		slot := ledger.Slot(i + 1)
		n.script.block(slot, account(1, ledger.Lamports(slot), programA))
		c.expect(basicFrame(account(1, ledger.Lamports(slot), programA), slot))
		c.raw(frameBytes(finBit|0x40|byte(websocket.TextMessage), "\xaa\x56\x2a"))
		if before, end := c.untilClose(); len(before) > 0 || end != endsReserved {
			t.Errorf("%s: ended with %v after %q, want %v", offer, end, before, endsReserved)
		}
		_ = c.conn.Close()
	}
}

// The dialer of a common library speaks with us too.
func TestACommonClientLibrary(t *testing.T) {
	n := serve(t, nil)
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return n.connect() }}
	conn, response, err := dialer.Dial("ws://ledger/api/ws/accounts?mode=none", nil)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer func() { _ = conn.Close() }()
	_ = response.Body.Close()
	if err := conn.WriteJSON(map[string]any{"type": "subscribe", "id": 1}); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != `{"type":"subscribed","id":1,"pubkeys":0,"programs":0,"slot":0,"seq":0}` {
		t.Fatalf("got %s, %v", got, err)
	}
	n.script.block(1, account(1, 1, programA))
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != basicFrame(account(1, 1, programA), 1) {
		t.Fatalf("got %s, %v", got, err)
	}
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye")
	if err := conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("err = %v, want the close frame back", err)
	}
}

// eager makes a connection whose client sends pieces right behind its handshake, the first of
// them in one with it, and does not wait for the answer.
func (n *node) eager(query string, pieces [][]byte) *client {
	n.Helper()
	c := n.open()
	go func() {
		for i, p := range pieces {
			if i == 0 {
				p = append(requestOf(query), p...)
			}
			if _, err := c.conn.Write(p); err != nil {
				return // the end came in the middle of it
			}
		}
	}()
	response, err := http.ReadResponse(c.r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		n.Fatalf("handshake %q: response %v, err %v", query, response, err)
	}
	return c
}
