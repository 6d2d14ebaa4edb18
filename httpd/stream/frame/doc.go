// Package frame reads and writes the frames of RFC 6455 as a server sees them: every frame from
// a client is masked, none to a client is, and no extension is negotiated.
//
// A [Header] stands before a payload. A [Message] is a text that may come in several frames.
// An [Error] is a breach of the protocol or of a limit, with the close code that answers it; all
// other errors are those of the socket. The package keeps no connection and starts nothing.
package frame

import "github.com/fasthttp/websocket"

// Opcode says what a frame is.
type Opcode byte

// Continuation is the opcode of a fragment that goes on. The websocket library has names for the others.
const Continuation Opcode = 0

// IsControl reports whether frames of this kind may come between the fragments of a message.
func (o Opcode) IsControl() bool { return o&0x8 != 0 }

// Error is a breach by the client. Its text is fixed and repeats nothing that was received.
type Error struct {
	Code uint16 // of the close frame that answers it
	Text string
}

func (e *Error) Error() string { return e.Text }

func breach(text string) *Error { return &Error{websocket.CloseProtocolError, text} }
