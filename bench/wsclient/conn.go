package wsclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Opcodes of RFC 6455, section 5.2.
const (
	OpText   = 0x1
	OpBinary = 0x2
	OpClose  = 0x8
	OpPing   = 0x9
	OpPong   = 0xa
)

// Bits of the first two bytes of a frame.
const (
	finBit, reservedBits, opBits = 0x80, 0x70, 0x0f
	maskBit, lengthBits          = 0x80, 0x7f
)

const (
	maxControlBytes = 125
	// maxFrameBytes bounds a frame. The longest that a server of ours sends is far below it.
	maxFrameBytes = 16 << 20
	// answerTimeout is how long the answer to a ping may wait for a full socket.
	answerTimeout = 10 * time.Second
)

var (
	errMasked     = errors.New("a frame from a server is masked")
	errReserved   = errors.New("a frame has reserved bits")
	errFragment   = errors.New("a message comes in fragments")
	errLongFrame  = errors.New("a frame is too long")
	errCloseFrame = errors.New("a close frame is malformed")
)

// CloseError is the server's close frame.
type CloseError struct {
	Code   uint16 // 1005 if it carried none
	Reason string
}

// Error says what the close frame says.
func (e *CloseError) Error() string {
	return fmt.Sprintf("closed by the server with %d %s", e.Code, e.Reason)
}

// noStatus stands for a close frame without a code.
const noStatus = 1005

// Frame is one frame from the server.
type Frame struct {
	Op      byte
	Payload []byte // valid until the next read
}

// Conn is one connection.
type Conn struct {
	socket net.Conn

	// The reader's: frames wait in buf[start:end].

	buf        []byte
	start, end int
	readBytes  int
	skip       int // bytes of the frame that was returned last, and is still in the buffer

	writing sync.Mutex
	out     []byte
}

// New returns the client's end of a connection whose handshake is behind, or which needs none.
// No more than readBytes are read at once, 0 for the default.
func New(socket net.Conn, readBytes int) *Conn {
	if readBytes == 0 {
		readBytes = defaultReadBytes
	}
	return &Conn{socket: socket, buf: make([]byte, min(firstReadBytes, readBytes)), readBytes: readBytes}
}

// NetConn returns the socket, for deadlines and options.
func (c *Conn) NetConn() net.Conn { return c.socket }

// Close closes the socket after a close frame, which nobody waits for. A reader gets an error
// that is net.ErrClosed.
func (c *Conn) Close() error {
	_ = c.socket.SetWriteDeadline(time.Now().Add(time.Millisecond)) // also for who writes now
	var code [2]byte
	binary.BigEndian.PutUint16(code[:], 1000)
	_ = c.write(OpClose, code[:])
	return c.socket.Close()
}

// WriteText sends a text frame.
func (c *Conn) WriteText(payload []byte) error { return c.write(OpText, payload) }

// write sends a frame, masked as RFC 6455 asks of clients (section 5.3).
func (c *Conn) write(op byte, payload []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	b := append(c.out[:0], finBit|op)
	switch n := len(payload); {
	case n < 126:
		b = append(b, maskBit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, maskBit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, maskBit|127), uint64(n))
	}
	var mask [4]byte
	binary.LittleEndian.PutUint32(mask[:], rand.Uint32())
	b = append(b, mask[:]...)
	for i, p := range payload {
		b = append(b, p^mask[i&3])
	}
	c.out = b
	if cap(b) > firstReadBytes {
		c.out = nil
	}
	_, err := c.socket.Write(b)
	return err
}

// waiting returns what was read and not yet consumed.
func (c *Conn) waiting() []byte { return c.buf[c.start:c.end] }

// fill reads more, behind what waits. It makes room first, and more of it when a read filled
// all there was.
func (c *Conn) fill() error {
	if c.start > 0 {
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
	}
	if c.end == len(c.buf) {
		grown := make([]byte, 2*len(c.buf))
		copy(grown, c.buf[:c.end])
		c.buf = grown
	}
	n, err := c.socket.Read(c.buf[c.end:])
	c.end += n
	if n > 0 {
		if c.end == len(c.buf) && len(c.buf) < c.readBytes { // there is probably more
			grown := make([]byte, min(4*len(c.buf), c.readBytes))
			copy(grown, c.buf)
			c.buf = grown
		}
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// header is what stands before a payload.
type header struct {
	op     byte
	size   int // of the header itself
	length int // of the payload
}

// parseHeader reads the header in front of b. It is not whole if b is too short for it.
func parseHeader(b []byte) (h header, whole bool, err error) {
	if len(b) < 2 {
		return h, false, nil
	}
	h.op, h.size, h.length = b[0]&opBits, 2, int(b[1]&lengthBits)
	switch {
	case b[0]&reservedBits != 0:
		return h, false, errReserved
	case b[0]&finBit == 0 || h.op == 0:
		return h, false, errFragment
	case b[1]&maskBit != 0:
		return h, false, errMasked
	}
	switch h.length {
	case 126:
		if len(b) < 4 {
			return h, false, nil
		}
		h.size, h.length = 4, int(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if len(b) < 10 {
			return h, false, nil
		}
		long := binary.BigEndian.Uint64(b[2:])
		if long > maxFrameBytes {
			return h, false, errLongFrame
		}
		h.size, h.length = 10, int(long)
	}
	return h, true, nil
}

// Next returns the next frame of data. It answers pings by itself, and returns a *CloseError
// for the server's close frame.
func (c *Conn) Next() (Frame, error) {
	c.start += c.skip
	c.skip = 0
	for {
		h, whole, err := parseHeader(c.waiting())
		if err != nil {
			return Frame{}, err
		}
		if !whole || len(c.waiting()) < h.size+h.length {
			if err := c.fill(); err != nil {
				return Frame{}, err
			}
			continue
		}
		payload := c.waiting()[h.size : h.size+h.length]
		if h.op < OpClose {
			c.skip = h.size + h.length
			return Frame{h.op, payload}, nil
		}
		if err := c.control(h.op, payload); err != nil {
			return Frame{}, err
		}
		c.start += h.size + h.length
	}
}

// control handles a control frame. The end of the connection is an error.
func (c *Conn) control(op byte, payload []byte) error {
	if len(payload) > maxControlBytes {
		return errLongFrame
	}
	switch op {
	case OpPing:
		_ = c.socket.SetWriteDeadline(time.Now().Add(answerTimeout))
		err := c.write(OpPong, payload)
		_ = c.socket.SetWriteDeadline(time.Time{})
		return err
	case OpClose:
		if len(payload) == 1 {
			return errCloseFrame
		}
		end := &CloseError{Code: noStatus}
		if len(payload) > 1 {
			end.Code, end.Reason = binary.BigEndian.Uint16(payload), string(payload[2:])
		}
		_ = c.socket.SetWriteDeadline(time.Now().Add(answerTimeout))
		_ = c.write(OpClose, payload[:min(len(payload), 2)]) // the server knows how it ends
		return end
	}
	return nil
}
