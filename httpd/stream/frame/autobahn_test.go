package frame

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fasthttp/websocket"
)

// The tests of this file follow the public case list of the Autobahn test suite, case by case:
// groups 1 to 7, 9 and 10 as far as they are about frames. What a connection makes of them is
// tested in package stream.

// protocolCase is what a client sends and what is read of it.
type protocolCase struct {
	id   string
	sent [][]byte
	gets []event // in order, before the end
	err  *Error  // nil: all of it is good
}

// event is a control frame, a message, or a close code.
type event struct {
	op      Opcode
	payload string
}

var (
	reserved    = breach("reserved bits are set")
	unmasked    = breach("frames from a client must be masked")
	unknown     = breach("unknown opcode")
	longControl = breach("control frames carry at most 125 bytes")
	cutControl  = breach("control frames must not be fragmented")
	misplaced   = breach("a message begins or goes on where it must not")
	halfCode    = breach("a close code has two bytes")
	badCode     = breach("invalid close code")
	notText     = &Error{1003, "only text messages are understood"}
	tooBig      = &Error{1009, "a message may have at most 65536 bytes"}
)

// masked returns a frame as a client sends it.
func masked(first byte, payload string) []byte {
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

func text(payload string) []byte     { return masked(finBit|byte(websocket.TextMessage), payload) }
func begun(payload string) []byte    { return masked(byte(websocket.TextMessage), payload) }
func more(payload string) []byte     { return masked(byte(Continuation), payload) }
func last(payload string) []byte     { return masked(finBit|byte(Continuation), payload) }
func binaryOf(payload string) []byte { return masked(finBit|byte(websocket.BinaryMessage), payload) }
func ping(payload string) []byte     { return masked(finBit|byte(websocket.PingMessage), payload) }
func pong(payload string) []byte     { return masked(finBit|byte(websocket.PongMessage), payload) }
func closeOf(payload string) []byte  { return masked(finBit|byte(websocket.CloseMessage), payload) }

// codeOf returns the payload of a close frame.
func codeOf(code uint16, reason string) string {
	return string(binary.BigEndian.AppendUint16(nil, code)) + reason
}

// fragments cuts a message into frames.
func fragments(op Opcode, size int, payload string) (frames [][]byte) {
	for first := byte(op); ; first = byte(Continuation) {
		if len(payload) <= size {
			return append(frames, masked(finBit|first, payload))
		}
		frames = append(frames, masked(first, payload[:size]))
		payload = payload[size:]
	}
}

func frames(all ...[]byte) [][]byte { return all }

func repeat(n int) string { return strings.Repeat("*", n) }

func gets(messages ...string) (out []event) {
	for _, m := range messages {
		out = append(out, event{websocket.TextMessage, m})
	}
	return out
}

// play reads what a client sends up to its end, a close frame, or an error.
func play(from io.Reader) (out []event, err error) {
	r, m := bufio.NewReader(from), new(Message)
	for {
		h, err := ReadHeader(r)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if !h.Op.IsControl() {
			if err := m.Read(h, r, func(text []byte) { out = append(out, event{websocket.TextMessage, string(text)}) }); err != nil {
				return out, err
			}
			continue
		}
		payload, err := h.ReadPayload(r, nil)
		if err != nil {
			return out, err
		}
		if h.Op == websocket.CloseMessage {
			code, err := ParseClose(payload)
			if err != nil {
				return out, err
			}
			return append(out, event{websocket.CloseMessage, fmt.Sprint(code)}), nil
		}
		out = append(out, event{h.Op, string(payload)})
	}
}

// runCases plays cases in one piece, and byte by byte.
func runCases(t *testing.T, cases []protocolCase) {
	t.Helper()
	for _, pc := range cases {
		sent := bytes.Join(pc.sent, nil)
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(sent), "bytes": iotest.OneByteReader(bytes.NewReader(sent))} {
			got, err := play(r)
			var e *Error
			errors.As(err, &e)
			if !slices.Equal(got, pc.gets) || (e == nil) != (pc.err == nil) || e != nil && *e != *pc.err || e == nil && err != nil {
				t.Errorf("%s, %s: read %.200q and %v, want %.200q and %v", pc.id, name, got, err, pc.gets, pc.err)
			}
		}
	}
}

// numbered returns the cases of a group that differ only in what they carry.
func numbered[T any](group string, all []T, make func(T) protocolCase) (cases []protocolCase) {
	for i, one := range all {
		pc := make(one)
		pc.id = fmt.Sprintf("%s.%d", group, i+1)
		cases = append(cases, pc)
	}
	return cases
}

// Groups 1, 9.1 to 9.4 and 10: messages of all lengths, whole and in fragments.
func TestLengths(t *testing.T) {
	sizes := []int{0, 125, 126, 127, 128, 65535, 65536, 65537, 256 << 10, 1 << 20}
	message := func(n int, sent [][]byte) protocolCase {
		if n > MaxMessageBytes {
			return protocolCase{sent: sent, err: tooBig}
		}
		return protocolCase{sent: sent, gets: gets(repeat(n))}
	}
	runCases(t, numbered("1.1", sizes, func(n int) protocolCase { return message(n, frames(text(repeat(n)))) }))
	runCases(t, numbered("1.2", sizes, func(n int) protocolCase {
		return protocolCase{sent: frames(binaryOf(repeat(n))), err: notText}
	}))
	cut := []int{64, 256, 1 << 10, 1300, 4 << 10, 16 << 10, 64 << 10, 256 << 10}
	runCases(t, numbered("10.1", cut, func(n int) protocolCase { return message(65536, fragments(websocket.TextMessage, n, repeat(65536))) }))
	runCases(t, numbered("9.3", cut, func(n int) protocolCase { return message(1<<20, fragments(websocket.TextMessage, n, repeat(1<<20))) }))
	runCases(t, numbered("9.4", cut, func(n int) protocolCase {
		return protocolCase{sent: fragments(websocket.BinaryMessage, n, repeat(1<<20)), err: notText}
	}))
}

// Groups 2 and 4: control frames, and opcodes without a meaning.
func TestControlFramesAndOpcodes(t *testing.T) {
	const bytes8 = "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
	cases := []protocolCase{
		{id: "2.1", sent: frames(ping("")), gets: []event{{websocket.PingMessage, ""}}},
		{id: "2.3", sent: frames(ping(bytes8)), gets: []event{{websocket.PingMessage, bytes8}}},
		{id: "2.4", sent: frames(ping(repeat(125))), gets: []event{{websocket.PingMessage, repeat(125)}}},
		{id: "2.5", sent: frames(ping(repeat(126))), err: longControl},
		{id: "2.8", sent: frames(pong("unasked")), gets: []event{{websocket.PongMessage, "unasked"}}},
		{id: "2.10", sent: slices.Repeat(frames(ping("x")), 10), gets: slices.Repeat([]event{{websocket.PingMessage, "x"}}, 10)},
		{id: "a ping of 64 KiB", sent: frames(ping(repeat(65536))), err: longControl},
		{id: "a pong of 126 bytes", sent: frames(pong(repeat(126))), err: longControl},
	}
	for op := range byte(16) {
		if slices.Contains([]Opcode{Continuation, websocket.TextMessage, websocket.BinaryMessage, websocket.CloseMessage, websocket.PingMessage, websocket.PongMessage}, Opcode(op)) {
			continue
		}
		for _, payload := range []string{"", "the case"} {
			cases = append(cases, protocolCase{
				id: fmt.Sprintf("4, opcode %d", op), err: unknown, gets: gets("before"),
				sent: frames(text("before"), masked(finBit|op, payload), ping("after")),
			})
		}
	}
	runCases(t, cases)
}

// Group 3: no extension is negotiated, so no reserved bit means anything. And no frame is unmasked.
func TestReservedBitsAndMasks(t *testing.T) {
	var cases []protocolCase
	for bits := byte(1); bits < 8; bits++ {
		for _, op := range []Opcode{websocket.TextMessage, websocket.BinaryMessage, websocket.PingMessage, websocket.PongMessage, websocket.CloseMessage} {
			cases = append(cases, protocolCase{
				id: fmt.Sprintf("3.%d, opcode %d", bits, op), err: reserved, gets: gets("before"),
				sent: frames(text("before"), masked(finBit|bits<<4|byte(op), ""), ping("after")),
			})
		}
	}
	runCases(t, append(cases,
		protocolCase{id: "unmasked text", sent: frames([]byte{0x81, 2, '{', '}'}), err: unmasked},
		protocolCase{id: "unmasked ping", sent: frames([]byte{0x89, 0}), err: unmasked},
		protocolCase{id: "unmasked close", sent: frames([]byte{0x88, 2, 3, 0xe8}), err: unmasked}))
}

// Group 5: fragments, and control frames between them.
func TestFragmentation(t *testing.T) {
	five := frames(begun("one"), more("two"), ping("first"), more("three"), more("four"), ping("second"), last("five"))
	runCases(t, []protocolCase{
		{id: "5.1", sent: frames(masked(byte(websocket.PingMessage), "one"), last("two")), err: cutControl},
		{id: "5.2", sent: frames(masked(byte(websocket.PongMessage), "one"), last("two")), err: cutControl},
		{id: "a fragmented close", sent: frames(masked(byte(websocket.CloseMessage), "\x03\xe8")), err: cutControl},
		{id: "5.3", sent: frames(begun("one"), last("two")), gets: gets("onetwo")},
		{id: "5.6", sent: frames(begun("one"), ping("between"), last("two")), gets: []event{{websocket.PingMessage, "between"}, {websocket.TextMessage, "onetwo"}}},
		{id: "5.9", sent: frames(last("of nothing"), text("whole")), err: misplaced},
		{id: "5.12", sent: frames(more("of nothing"), text("whole")), err: misplaced},
		{id: "5.15", sent: frames(begun("one"), last("two"), more("of nothing"), text("whole")), gets: gets("onetwo"), err: misplaced},
		{id: "5.18", sent: frames(begun("one"), text("two")), err: misplaced},
		{id: "5.19", sent: five, gets: []event{{websocket.PingMessage, "first"}, {websocket.PingMessage, "second"}, {websocket.TextMessage, "onetwothreefourfive"}}},
		{id: "binary inside a message", sent: frames(begun("{"), binaryOf("}")), err: misplaced},
		{id: "an empty text inside a message", sent: frames(begun("{"), begun("")), err: misplaced},
		{id: "open binary", sent: frames(masked(byte(websocket.BinaryMessage), "x")), err: notText},
		{id: "64 KiB and one in many frames", err: tooBig,
			sent: frames(begun(repeat(30000)), more(repeat(30000)), more(""), more(repeat(5536)), more("x"))},
		{id: "a promise of 2^63-1 bytes", sent: frames([]byte{0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}), err: tooBig},
		{id: "a continuation of 2^64-1 bytes", err: tooBig,
			sent: frames(begun("x"), []byte{0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})},
		{id: "the limit is one of each message", sent: frames(text(repeat(65536)), text(repeat(65536))), gets: gets(repeat(65536), repeat(65536))},
	})
}

// Group 7: what a close frame carries. Codes that a client may send are good, others a breach.
func TestClosePayloads(t *testing.T) {
	closed := func(code uint16) []event { return []event{{websocket.CloseMessage, fmt.Sprint(code)}} }
	cases := []protocolCase{
		{id: "7.1.1", sent: frames(text("before"), closeOf(codeOf(1000, "")), ping("after")), gets: append(gets("before"), closed(1000)...)},
		{id: "7.1.5", sent: frames(begun("one"), closeOf(codeOf(1000, "")), last("two")), gets: closed(1000)},
		{id: "7.3.1", sent: frames(closeOf("")), gets: closed(1000)},
		{id: "7.3.2", sent: frames(closeOf("\x03")), err: halfCode},
		{id: "7.3.4", sent: frames(closeOf(codeOf(1000, "a reason"))), gets: closed(1000)},
		{id: "7.3.5", sent: frames(closeOf(codeOf(1000, repeat(123)))), gets: closed(1000)},
		{id: "7.3.6", sent: frames(closeOf(codeOf(1000, repeat(124)))), err: longControl},
		{id: "7.5.1", sent: frames(closeOf(codeOf(1000, spoiled))), err: errUTF8},
	}
	good := []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999}
	cases = append(cases, numbered("7.7", good, func(code uint16) protocolCase {
		return protocolCase{sent: frames(closeOf(codeOf(code, ""))), gets: closed(code)}
	})...)
	bad := []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}
	runCases(t, append(cases, numbered("7.9", bad, func(code uint16) protocolCase {
		return protocolCase{sent: frames(closeOf(codeOf(code, ""))), err: badCode}
	})...))
}
