package frame

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/fasthttp/websocket"
)

// AppendText appends a text frame with the payload that write appends.
func AppendText(dst []byte, write func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, finBit|byte(websocket.TextMessage), 126, 0, 0) // room for the header that most have
	dst = write(dst)
	n := len(dst) - start - 4
	switch {
	case n < 126:
		dst[start+1] = byte(n)
		copy(dst[start+2:], dst[start+4:])
		return dst[:len(dst)-2]
	case n > math.MaxUint16:
		dst = slices.Insert(dst, start+4, make([]byte, 6)...)
		dst[start+1] = 127
		binary.BigEndian.PutUint64(dst[start+2:], uint64(n))
		return dst
	}
	binary.BigEndian.PutUint16(dst[start+2:], uint16(n))
	return dst
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
