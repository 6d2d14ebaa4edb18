package stream

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf8"
)

// The framing of RFC 6455, section 5.2, as a server sees it: every frame from a client is
// masked, none to a client is.
//
//	byte 0   FIN 0x80, three reserved bits 0x70, opcode 0x0f
//	byte 1   MASK 0x80, length 0x7f: below 126 the length, 126: two, 127: eight bytes follow
//	         the extended length, big endian
//	         four bytes of mask, from a client
//	         the payload
type opcode byte

const (
	opContinuation opcode = 0x0
	opText         opcode = 0x1
	opBinary       opcode = 0x2
	opClose        opcode = 0x8
	opPing         opcode = 0x9
	opPong         opcode = 0xa
)

func (o opcode) isControl() bool { return o&0x8 != 0 }

const (
	finBit, reservedBits, maskBit = 0x80, 0x70, 0x80

	maxControlBytes = 125
	// maxMessageBytes is the largest message a client may send, however it is cut up.
	maxMessageBytes = 64 << 10
)

// frameHeader is what stands before a client's payload.
type frameHeader struct {
	fin    bool
	op     opcode
	length uint64
	mask   [4]byte
}

// readHeader reads and checks a header. A breach of the protocol is a *closing, anything
// else an error of the socket.
func readHeader(r *bufio.Reader) (h frameHeader, err error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return h, err
	}
	h.fin, h.op = b[0]&finBit != 0, opcode(b[0]&0xf)
	length := b[1] &^ maskBit
	switch {
	case b[0]&reservedBits != 0:
		return h, protocolError("reserved bits are set")
	case b[1]&maskBit == 0:
		return h, protocolError("frames from a client must be masked")
	case h.op > opBinary && h.op < opClose || h.op > opPong:
		return h, protocolError("unknown opcode")
	case h.op.isControl() && !h.fin:
		return h, protocolError("control frames must not be fragmented")
	case h.op.isControl() && length > maxControlBytes:
		return h, protocolError("control frames carry at most 125 bytes")
	}
	switch length {
	case 126:
		_, err = io.ReadFull(r, b[:2])
		h.length = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		_, err = io.ReadFull(r, b[:8])
		h.length = binary.BigEndian.Uint64(b[:])
	default:
		h.length = uint64(length)
	}
	if err == nil {
		_, err = io.ReadFull(r, h.mask[:])
	}
	return h, err
}

// readPayload appends the payload, unmasked, to dst. The caller has checked the length.
func (h *frameHeader) readPayload(r *bufio.Reader, dst []byte) ([]byte, error) {
	const step = 4096 // memory follows what arrives, not what a header promises
	start := len(dst)
	for left := int(h.length); left > 0; {
		n := min(left, step)
		at := len(dst)
		dst = append(dst, make([]byte, n)...)
		if _, err := io.ReadFull(r, dst[at:]); err != nil {
			return dst[:start], err
		}
		left -= n
	}
	for i := range dst[start:] {
		dst[start+i] ^= h.mask[i&3]
	}
	return dst, nil
}

// appendFrame appends a text frame with the payload that write appends, which is shorter
// than 64 KiB.
func appendFrame(dst []byte, write func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, finBit|byte(opText), 126, 0, 0) // room for the longer of both headers
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

// appendControl appends a control frame; its payload is at most maxControlBytes.
func appendControl(dst []byte, op opcode, payload []byte) []byte {
	return append(append(dst, finBit|byte(op), byte(len(payload))), payload...)
}

// appendClose appends a close frame; a reason longer than a control frame carries is cut.
func appendClose(dst []byte, code uint16, reason string) []byte {
	payload := binary.BigEndian.AppendUint16(make([]byte, 0, maxControlBytes), code)
	return appendControl(dst, opClose, append(payload, reason[:min(len(reason), maxControlBytes-2)]...))
}

// answerToClose says how a connection ends whose client sent a close frame: with its own code.
func answerToClose(payload []byte) *closing {
	if len(payload) == 0 {
		return &closing{reason: reasonClient, code: closeNormal}
	}
	if len(payload) == 1 {
		return protocolError("a close code has two bytes")
	}
	code := binary.BigEndian.Uint16(payload)
	switch {
	case !mayReceive(code):
		return protocolError("invalid close code")
	case !utf8.Valid(payload[2:]):
		return &endUTF8
	}
	return &closing{reason: reasonClient, code: code}
}

// mayReceive reports whether a client may send the close code: those the registry of RFC
// 6455 names for use in a frame, and those left to libraries and applications.
func mayReceive(code uint16) bool {
	switch {
	case code == 1004 || code == 1005 || code == 1006:
		return false
	case code >= 1000 && code <= 1014:
		return true
	}
	return code >= 3000 && code <= 4999
}
