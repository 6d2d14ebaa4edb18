package frame

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf8"

	"github.com/fasthttp/websocket"
)

const (
	finBit, reservedBits, maskBit = 0x80, 0x70, 0x80

	maxControlBytes = 125
	// MaxMessageBytes is the largest message a client may send, however it is cut up.
	MaxMessageBytes = 64 << 10
)

// Header is what stands before a client's payload:
//
//	byte 0   FIN 0x80, three reserved bits 0x70, opcode 0x0f
//	byte 1   MASK 0x80, length 0x7f: below 126 the length, 126: two, 127: eight bytes follow
//	         the extended length, big endian
//	         four bytes of mask, from a client
//	         the payload
type Header struct {
	Fin    bool
	Op     Opcode
	Length uint64
	mask   [4]byte
}

// ReadHeader reads and checks a header. It returns an *Error if no such frame may come.
func ReadHeader(r *bufio.Reader) (h Header, err error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return h, err
	}
	h.Fin, h.Op = b[0]&finBit != 0, Opcode(b[0]&0xf)
	length := b[1] &^ maskBit
	switch {
	case b[0]&reservedBits != 0:
		return h, breach("reserved bits are set")
	case b[1]&maskBit == 0:
		return h, breach("frames from a client must be masked")
	case h.Op > websocket.BinaryMessage && h.Op < websocket.CloseMessage || h.Op > websocket.PongMessage:
		return h, breach("unknown opcode")
	case h.Op.IsControl() && !h.Fin:
		return h, breach("control frames must not be fragmented")
	case h.Op.IsControl() && length > maxControlBytes:
		return h, breach("control frames carry at most 125 bytes")
	}
	var least uint64 // that has a length of so many bytes
	switch length {
	case 126:
		_, err = io.ReadFull(r, b[:2])
		h.Length, least = uint64(binary.BigEndian.Uint16(b[:])), 126
	case 127:
		_, err = io.ReadFull(r, b[:8])
		h.Length, least = binary.BigEndian.Uint64(b[:]), 1<<16
	default:
		h.Length = uint64(length)
	}
	switch {
	case err != nil:
		return h, err
	case h.Length < least:
		return h, breach("a length takes the fewest bytes that it fits in")
	}
	_, err = io.ReadFull(r, h.mask[:])
	return h, err
}

// ReadControl returns the payload of a control frame, unmasked.
func (h *Header) ReadControl(r *bufio.Reader) ([]byte, error) {
	payload := make([]byte, h.Length)
	_, err := io.ReadFull(r, payload)
	h.unmask(payload)
	return payload, err
}

func (h *Header) unmask(payload []byte) {
	for i := range payload {
		payload[i] ^= h.mask[i&3]
	}
}

// Message gathers the fragments of one text message after the other. The zero value is ready.
type Message struct {
	// Grow is called before a message takes so many bytes more of memory, as it arrives: it grows with that, not with what headers
	// promise. After an error nothing more of it is read. nil: nobody counts.
	Grow func(bytes int) error

	text []byte
	open bool // a message has begun and not ended
}

// minGrowth is how many bytes a message grows by at least.
const minGrowth = 512

// Size returns what the message takes of memory.
func (m *Message) Size() int { return cap(m.text) }

// Read reads the payload of a data frame. At the end of a message it calls handle with the text,
// which is valid until handle returns.
func (m *Message) Read(h Header, r *bufio.Reader, handle func(text []byte)) (err error) {
	switch {
	case m.open != (h.Op == Continuation):
		return breach("a message begins or goes on where it must not")
	case h.Op == websocket.BinaryMessage:
		return &Error{websocket.CloseUnsupportedData, "only text messages are understood"}
	case h.Length > uint64(MaxMessageBytes-len(m.text)):
		return &Error{websocket.CloseMessageTooBig, "a message may have at most 65536 bytes"}
	}
	if err := m.readPayload(h, r); err != nil {
		return err
	}
	if m.open = !h.Fin; m.open {
		return nil
	}
	if !utf8.Valid(m.text) {
		return errUTF8
	}
	handle(m.text)
	m.text = nil
	return nil
}

// readPayload appends a payload, unmasked.
func (m *Message) readPayload(h Header, r *bufio.Reader) error {
	start, end := len(m.text), len(m.text)+int(h.Length)
	for len(m.text) < end {
		if len(m.text) == cap(m.text) {
			grown := make([]byte, len(m.text), min(max(2*cap(m.text), minGrowth), MaxMessageBytes))
			if m.Grow != nil {
				if err := m.Grow(cap(grown) - cap(m.text)); err != nil {
					return err
				}
			}
			copy(grown, m.text)
			m.text = grown
		}
		n, err := r.Read(m.text[len(m.text):min(cap(m.text), end)])
		if m.text = m.text[:len(m.text)+n]; err != nil {
			return err
		}
	}
	h.unmask(m.text[start:])
	return nil
}

var errUTF8 = &Error{websocket.CloseInvalidFramePayloadData, "text must be valid UTF-8"}

// ParseClose returns the code in the payload of a close frame, 1000 if there is none.
func ParseClose(payload []byte) (code uint16, err error) {
	switch {
	case len(payload) == 0:
		return websocket.CloseNormalClosure, nil
	case len(payload) == 1:
		return 0, breach("a close code has two bytes")
	}
	code = binary.BigEndian.Uint16(payload)
	switch {
	case !mayReceive(code):
		return 0, breach("invalid close code")
	case !utf8.Valid(payload[2:]):
		return 0, errUTF8
	}
	return code, nil
}

// mayReceive reports whether a client may send the close code: those the registry of RFC
// 6455 names for use in a frame, and those left to libraries and applications.
func mayReceive(code uint16) bool {
	return code >= 1000 && code <= 1003 || code >= 1007 && code <= 1014 || code >= 3000 && code <= 4999
}
