package stream

import (
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// What a client of the protocol sends and gets. What breaks the protocol is in testdata/autobahn.txt, by the case list of the Autobahn test suite.

// ending is the close frame that a connection comes to.
type ending struct {
	code uint16
	text string
}

// maySend reports whether a close code may stand in a frame.
func maySend(code uint16) bool {
	return code >= 1000 && code <= 1003 || code >= 1007 && code <= 1014 || code >= 3000 && code <= 4999
}

// What clients send.
func text(payload string) []byte  { return frameBytes(finBit|byte(websocket.TextMessage), payload) }
func begun(payload string) []byte { return frameBytes(byte(websocket.TextMessage), payload) }
func more(payload string) []byte  { return frameBytes(byte(frame.Continuation), payload) }
func last(payload string) []byte  { return frameBytes(finBit|byte(frame.Continuation), payload) }
func ping(payload string) []byte  { return frameBytes(finBit|byte(websocket.PingMessage), payload) }
func pong(payload string) []byte  { return frameBytes(finBit|byte(websocket.PongMessage), payload) }

func closeOf(payload string) []byte { return frameBytes(finBit|byte(websocket.CloseMessage), payload) }

// list writes keys as the JSON list of a message.
func list(keys ...ledger.Pubkey) string {
	b, _ := json.Marshal(keys)
	return string(b)
}

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

// repeat returns a payload of so many bytes, each a character.
func repeat(n int) string { return strings.Repeat("*", n) }
