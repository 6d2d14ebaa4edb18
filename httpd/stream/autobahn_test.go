package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// The autobahn_*_test.go files follow the public case list of the Autobahn test suite, case
// by case: groups 1 to 7, 9 and 10. Of group 12, compression, remains that it is never
// negotiated and its frames are refused. (13 is the same with other parameters, 8 and 11 do
// not exist.)
//
// The suite speaks with servers that echo. This one answers: a text message that is none of
// its own with one error, after which the connection is as good as before; a binary one with
// 1003; one of more than 64 KiB with 1009. And a client has a budget of 100 frames, and 20
// more each second: cases that send more of them end with 1008, where nothing else ends
// them before. Chops and octets cost nothing, fragments do.
//
// Every case runs twice: on sockets, as clients do, and in memory, where pieces that are
// written one by one are read one by one, and the end is followed to the last.

// protocolCase is what a client sends and what it gets.
type protocolCase struct {
	id   string
	sent [][]byte // pieces, each written by itself
	gets []reply  // in order, before the end
	ends ending
}

// reply is a frame of the server's.
type reply struct {
	op      opcode
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
var refusal = reply{opText, `{"type":"error","id":null,"error":"Invalid request parameters",` +
	`"details":"a message is a JSON object with a type of subscribe, unsubscribe, resume or ping"}`}

func ponged(payload string) reply { return reply{opPong, payload} }

// What clients send.
func text(payload string) []byte     { return frameBytes(finBit|byte(opText), payload) }
func begun(payload string) []byte    { return frameBytes(byte(opText), payload) }
func more(payload string) []byte     { return frameBytes(byte(opContinuation), payload) }
func last(payload string) []byte     { return frameBytes(finBit|byte(opContinuation), payload) }
func binaryOf(payload string) []byte { return frameBytes(finBit|byte(opBinary), payload) }
func ping(payload string) []byte     { return frameBytes(finBit|byte(opPing), payload) }
func pong(payload string) []byte     { return frameBytes(finBit|byte(opPong), payload) }

func closeOf(payload string) []byte { return frameBytes(finBit|byte(opClose), payload) }

// codeOf returns the payload of a close frame.
func codeOf(code uint16, reason string) string {
	return string(binary.BigEndian.AppendUint16(nil, code)) + reason
}

// fragments cuts a message into frames.
func fragments(op opcode, size int, payload string) (frames [][]byte) {
	for first := byte(op); ; first = byte(opContinuation) {
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

// runCases runs cases on sockets and in memory.
func runCases(t *testing.T, cases []protocolCase) {
	t.Helper()
	n := serve(t, nil)
	for _, pc := range cases {
		t.Run(pc.id+"/socket", func(t *testing.T) { n.within(t).play(pc) })
		t.Run(pc.id+"/memory", func(t *testing.T) {
			inMemory(t, nil, func(n *node) { n.play(pc) })
		})
	}
}

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
	if want := codeOf(pc.ends.code, pc.ends.text); op != opClose || payload != want || err != nil {
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

// numbered returns the cases of a group that differ only in what they carry.
func numbered[T any](group string, all []T, make func(T) protocolCase) (cases []protocolCase) {
	for i, one := range all {
		pc := make(one)
		pc.id = fmt.Sprintf("%s.%d", group, i+1)
		cases = append(cases, pc)
	}
	return cases
}
