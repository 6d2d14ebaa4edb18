package frame

import (
	"encoding/binary"

	"github.com/fasthttp/websocket"
)

// AppendText appends a text frame with the payload that write appends, which is shorter
// than 64 KiB.
func AppendText(dst []byte, write func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, finBit|byte(websocket.TextMessage), 126, 0, 0) // room for the longer of both headers
	dst = write(dst)
	n := len(dst) - start - 4
	if n >= 126 {
		binary.BigEndian.PutUint16(dst[start+2:], uint16(n))
		return dst
	}
	dst[start+1] = byte(n)
	copy(dst[start+2:], dst[start+4:])
	return dst[:len(dst)-2]
}

// AppendControl appends a control frame; its payload is at most 125 bytes.
func AppendControl(dst []byte, op Opcode, payload []byte) []byte {
	return append(append(dst, finBit|byte(op), byte(len(payload))), payload...)
}

// AppendClose appends a close frame; a reason longer than a control frame carries is cut.
func AppendClose(dst []byte, code uint16, reason string) []byte {
	payload := binary.BigEndian.AppendUint16(make([]byte, 0, maxControlBytes), code)
	return AppendControl(dst, websocket.CloseMessage, append(payload, reason[:min(len(reason), maxControlBytes-2)]...))
}
