package stream

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"ledgerd/engine/ledger"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ledgerd/httpd/stream/frame"
)

// What a client of the protocol sees: a text message that is none of ours is answered with one error,
// after which the connection is as good as before; what breaks the protocol or a limit ends it.
// The frames themselves are tested in package frame.

// protocolCase is what a client sends and what it gets.
type protocolCase struct {
	sent [][]byte // pieces, each written by itself
	gets []reply  // in order, before the end
	ends ending
}

// reply is a frame of the server's.
type reply struct {
	op      frame.Opcode
	payload string
}

// ending is the close frame that a case comes to. The zero value stands for none: the
// connection is still good, and closes as a client asks it to.
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
	endsNormally    = ending{1000, ""}
)

// refusal answers a text message that is none of ours.
var refusal = reply{frame.Text, `{"type":"error","id":null,"error":"Invalid request parameters",` +
	`"details":"a message is a JSON object with a type of subscribe, unsubscribe, resume or ping"}`}

func ponged(payload string) reply { return reply{frame.Pong, payload} }

// What clients send.
func text(payload string) []byte     { return frameBytes(finBit|byte(frame.Text), payload) }
func begun(payload string) []byte    { return frameBytes(byte(frame.Text), payload) }
func more(payload string) []byte     { return frameBytes(byte(frame.Continuation), payload) }
func last(payload string) []byte     { return frameBytes(finBit|byte(frame.Continuation), payload) }
func binaryOf(payload string) []byte { return frameBytes(finBit|byte(frame.Binary), payload) }
func ping(payload string) []byte     { return frameBytes(finBit|byte(frame.Ping), payload) }
func pong(payload string) []byte     { return frameBytes(finBit|byte(frame.Pong), payload) }

func closeOf(payload string) []byte { return frameBytes(finBit|byte(frame.Close), payload) }

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

// atOnce writes frames in one piece.
func atOnce(frames ...[]byte) [][]byte { return [][]byte{bytes.Join(frames, nil)} }

// chopped writes frames in pieces of so many octets.
func chopped(octets int, frames ...[]byte) [][]byte {
	return slices.Collect(slices.Chunk(bytes.Join(frames, nil), octets))
}

// each writes frames one by one.
func each(frames ...[]byte) [][]byte { return frames }

// play runs one case on a connection of its own.
func (n *node) play(pc protocolCase) {
	n.Helper()
	_, c := n.handshake("?mode=none")
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, piece := range pc.sent {
			if _, err := c.conn.Write(piece); err != nil {
				return // the end came in the middle of it
			}
		}
	}()
	for i, want := range pc.gets {
		if op, payload, err := c.read(); (reply{op, payload}) != want || err != nil {
			n.Errorf("answer %d: opcode %#x, payload %.200q, err %v, want %#x %.200q", i, op, payload, err, want.op, want.payload)
			return
		}
	}
	if pc.ends == (ending{}) {
		<-sent
		c.send("still there?")
		if op, payload, err := c.read(); (reply{op, payload}) != refusal || err != nil {
			n.Errorf("afterwards: opcode %#x, payload %.200q, err %v, want one more answer", op, payload, err)
			return
		}
		c.close(codeOf(1000, ""))
		pc.ends = endsNormally
	}
	n.checkEnd(c, pc)
	_ = c.conn.Close()
	<-sent
}

// checkEnd reads the close frame, answers it, and in memory sees that nothing follows.
func (n *node) checkEnd(c *client, pc protocolCase) {
	n.Helper()
	op, payload, err := c.read()
	if want := codeOf(pc.ends.code, pc.ends.text); op != frame.Close || payload != want || err != nil {
		n.Errorf("it ends with opcode %#x, payload %.200q, err %v, want a close frame of %q", op, payload, err, want)
		return
	}
	if _, ok := c.conn.(*pipe); !ok {
		return // the server may wait for us, or reset what we still send
	}
	if _, _, err := c.read(); !errors.Is(err, io.EOF) {
		n.Errorf("after the close frame: err = %v, want EOF", err)
	}
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

// What breaks the protocol, or a limit, in a way that the Autobahn list has no case for. Nobody
// else notices.
func TestBrokenFramesEndTheConnection(t *testing.T) {
	header := func(b ...byte) []byte { return b }
	long := strings.Repeat("x", frame.MaxMessageBytes)
	tests := map[string]struct {
		sent [][]byte
		ends ending
	}{
		"unmasked text":                   {atOnce(header(0x81, 2, '{', '}')), endsUnmasked},
		"a message in UTF-16":             {atOnce(text("\xff\xfe{\x00}\x00")), endsUTF8},
		"half a character in two frames":  {atOnce(begun("{}\xe2"), last("\x82")), endsUTF8},
		"64 KiB and one":                  {atOnce(text(long + "x")), endsTooBig},
		"a bad frame with much behind it": {atOnce(frameBytes(finBit|3, ""), text(long), text(long)), endsOpcode},
	}
	n := serve(t, nil)
	other := n.dial("")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n.within(t).play(protocolCase{sent: tt.sent, ends: tt.ends})
		})
		slot := n.script.nextSlot()
		n.script.block(slot, account(1, 1, programA))
		other.expect(basicFrame(account(1, 1, programA), slot))
	}
}

// Cases 5.19 and 5.20: the first ping is answered while the message is still under way.
func TestPingsAreAnsweredWithinAMessage(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?mode=none")
		expectPong := func(want string) {
			if op, got, err := c.read(); op != frame.Pong || got != want || err != nil {
				n.Fatalf("opcode %#x, payload %q, err %v, want a pong of %q", op, got, err, want)
			}
		}
		for _, frame := range [][]byte{begun(`{"type":"unsub`), more(`scribe",`), ping("first")} {
			c.raw(frame)
		}
		expectPong("first")
		for _, frame := range [][]byte{more(`"id":1,`), more(`"all":`), ping("second")} {
			c.raw(frame)
		}
		expectPong("second")
		c.raw(last(`true}`))
		c.expect(`{"type":"unsubscribed","id":1,"pubkeys":0,"programs":0}`)
	})
}

// A large message in small fragments uses up the budget before 64 KiB have come.
func TestFragmentsTakeFromTheBudget(t *testing.T) {
	n := serve(t, nil)
	for size, ends := range map[int]ending{64: endsRate, 512: endsRate, 1 << 10: endsTooBig, 64 << 10: endsTooBig} {
		n.play(protocolCase{sent: atOnce(fragments(frame.Text, size, repeat(4<<20))...), ends: ends})
	}
}

// tripSizes are those of groups 9.7 and 9.8.
var tripSizes = []int{0, 16, 64, 256, 1024, 4096}

// Group 9.7: a thousand messages, each sent when the one before was answered. Without a pause
// that is more than the budget, which holds for as many as it says; at the pace at which it
// fills, all are answered.
func TestTheBudgetFills(t *testing.T) {
	const trips = 1000
	for i, size := range tripSizes {
		t.Run(fmt.Sprintf("9.7.%d", i+1), func(t *testing.T) {
			inMemory(t, nil, func(n *node) {
				_, c := n.handshake("?mode=none")
				for range budgetBurst {
					n.trip(c, size)
				}
				c.raw(text(repeat(size)))
				n.checkEnd(c, protocolCase{ends: endsRate})
			})
			inMemory(t, nil, func(n *node) {
				_, c := n.handshake("?mode=none")
				for range trips {
					n.trip(c, size)
					time.Sleep(time.Second / budgetPerSecond)
				}
				c.close(codeOf(1000, ""))
				c.ends()
			})
		})
	}
}

// trip sends a message and reads its answer, past pings of the server's.
func (n *node) trip(c *client, size int) {
	n.Helper()
	c.raw(text(repeat(size)))
	for {
		op, payload, err := c.read()
		if op == frame.Ping && err == nil {
			continue
		}
		if (reply{op, payload}) != refusal || err != nil {
			n.Fatalf("opcode %#x, payload %q, err %v, want the answer", op, payload, err)
		}
		return
	}
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
		c.raw(frameBytes(finBit|0x40|byte(frame.Text), "\xaa\x56\x2a"))
		n.checkEnd(c, protocolCase{ends: endsReserved})
	}
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
		if op, payload, err := c.read(); op != frame.Pong || payload != "first" || err != nil {
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
