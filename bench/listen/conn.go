package listen

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
	OpText  = 0x1
	OpClose = 0x8
	OpPing  = 0x9
	OpPong  = 0xa
)

// Bits of the first two bytes of a frame.
const (
	finBit, reservedBits, opBits = 0x80, 0x70, 0x0f
	maskBit, lengthBits          = 0x80, 0x7f
)

const (
	maxControlBytes = 125
	// maxFrameBytes is far above the longest frame that ledgerd sends.
	maxFrameBytes = 16 << 20
	// answerTimeout is how long the answer to a ping may wait for a full socket.
	answerTimeout = 10 * time.Second
	// firstReadBytes is what a buffer begins with. A conn that receives little needs no more.
	firstReadBytes = 1 << 10
	// mostReadBytes is the most that one call reads. With less, calls cost more; with more, the buffers of all conns leave
	// the processor's caches.
	mostReadBytes = 64 << 10
)

var errLongFrame = errors.New("a frame is too long")

// CloseError is the server's close frame.
type CloseError struct {
	Code   uint16 // 1005 if it carried none
	Reason string
}

// Error returns the code and the reason.
func (e *CloseError) Error() string {
	return fmt.Sprintf("closed by the server with %d %s", e.Code, e.Reason)
}

// Frame is one frame from the server.
type Frame struct {
	Op      byte
	Payload []byte // valid until the next read
}

// Conn is one connection.
type Conn struct {
	socket net.Conn

	// The reader's: buf[start:end] is not consumed yet.

	buf        []byte
	start, end int
	skip       int // bytes of the frame that Next returned last, which is still in the buffer

	writing sync.Mutex
}

// New returns the client's end of a connection after its handshake, or of one without.
func New(socket net.Conn) *Conn { return &Conn{socket: socket, buf: make([]byte, firstReadBytes)} }

// NetConn returns the socket, for deadlines and options.
func (c *Conn) NetConn() net.Conn { return c.socket }

// Close closes the socket after a close frame, whose answer it does not wait for. A reader gets net.ErrClosed.
func (c *Conn) Close() error {
	_ = c.socket.SetWriteDeadline(time.Now().Add(time.Millisecond)) // also for a writer that waits
	_ = c.write(OpClose, binary.BigEndian.AppendUint16(nil, 1000))
	return c.socket.Close()
}

// Reset drops the connection without a close frame, as a host does that lost it.
func (c *Conn) Reset() {
	if tcp, ok := c.socket.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.socket.Close()
}

// WriteText sends a text frame.
func (c *Conn) WriteText(payload []byte) error { return c.write(OpText, payload) }

// write sends a frame, masked as RFC 6455 asks of clients (section 5.3).
func (c *Conn) write(op byte, payload []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	b := []byte{finBit | op}
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
	_, err := c.socket.Write(b)
	return err
}

// waiting returns what was read and not yet consumed.
func (c *Conn) waiting() []byte { return c.buf[c.start:c.end] }

// fill reads more after what waits. The buffer grows when a read has filled it.
func (c *Conn) fill() error {
	if c.start > 0 {
		c.end = copy(c.buf, c.waiting())
		c.start = 0
	}
	if c.end == len(c.buf) {
		c.grow(2 * len(c.buf))
	}
	n, err := c.socket.Read(c.buf[c.end:])
	c.end += n
	switch {
	case n == 0 && err == nil:
		return io.ErrNoProgress
	case n == 0:
		return err
	case c.end == len(c.buf) && len(c.buf) < mostReadBytes: // there is probably more
		c.grow(min(4*len(c.buf), mostReadBytes))
	}
	return nil
}

func (c *Conn) grow(size int) {
	grown := make([]byte, size)
	copy(grown, c.buf[:c.end])
	c.buf = grown
}

// header is what stands before a payload.
type header struct {
	op     byte
	size   int // of the header itself
	length int // of the payload
}

// parseHeader reads the header in front of b. It is not whole if b is too short for the frame.
func parseHeader(b []byte) (h header, whole bool, err error) {
	if len(b) < 2 {
		return h, false, nil
	}
	h.op, h.size, h.length = b[0]&opBits, 2, int(b[1]&lengthBits)
	switch {
	case b[0]&reservedBits != 0:
		return h, false, errors.New("a frame has reserved bits")
	case b[0]&finBit == 0 || h.op == 0:
		return h, false, errors.New("a message comes in fragments")
	case b[1]&maskBit != 0:
		return h, false, errors.New("a frame from a server is masked")
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
	return h, len(b) >= h.size+h.length, nil
}

// Next returns the next frame of data. It answers pings by itself, and returns a *CloseError for the server's close frame.
func (c *Conn) Next() (Frame, error) {
	c.start += c.skip
	c.skip = 0
	for {
		h, whole, err := parseHeader(c.waiting())
		if err == nil && !whole {
			err = c.fill()
		}
		if err != nil {
			return Frame{}, err
		}
		if !whole {
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
	answer := func(op byte, payload []byte) error {
		_ = c.socket.SetWriteDeadline(time.Now().Add(answerTimeout))
		defer func() { _ = c.socket.SetWriteDeadline(time.Time{}) }()
		return c.write(op, payload)
	}
	switch {
	case op == OpPing:
		return answer(OpPong, payload)
	case op == OpClose && len(payload) == 1:
		return errors.New("a close frame is malformed")
	case op == OpClose:
		const noStatus = 1005 // RFC 6455, section 7.4.1
		end := &CloseError{Code: noStatus}
		if len(payload) > 1 {
			end.Code, end.Reason = binary.BigEndian.Uint16(payload), string(payload[2:])
		}
		_ = answer(OpClose, payload[:min(len(payload), 2)]) // the server knows how it ends
		return end
	}
	return nil
}
