package stream

import (
	"encoding/binary"
	"encoding/json"
	"strings"

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
)

// refusal answers a text message that is none of ours.
var refusal = reply{websocket.TextMessage, `{"type":"error","id":null,"error":"Invalid request parameters",` +
	`"details":"a message is a JSON object with a type of subscribe, unsubscribe, resume or ping"}`}

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
