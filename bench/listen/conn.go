package listen

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
)

// maxFrameBytes is far above the longest frame that ledgerd sends.
const maxFrameBytes = 16 << 20

// Piece is what one read of a stream returns: a frame, or bytes of many.
type Piece struct {
	Payload []byte // of a single frame, valid until the next read; else nil
	Frames  int
	Bytes   int // with the headers
}

// Stream is what a subscriber reads: a *Conn, or a stream of another service.
type Stream interface {
	Next() (Piece, error)
	Close() error // ends Next
}

// Conn is one WebSocket connection.
type Conn struct {
	ws      *websocket.Conn
	payload bytes.Buffer // of the frame that Next returned last
	writing sync.Mutex
}

// New returns the client's end of a connection after its handshake.
func New(ws *websocket.Conn) *Conn {
	ws.SetReadLimit(maxFrameBytes)
	return &Conn{ws: ws}
}

// NetConn returns the socket, for deadlines and options.
func (c *Conn) NetConn() net.Conn { return c.ws.NetConn() }

// Close closes the socket after a close frame, whose answer it does not wait for. A reader gets net.ErrClosed.
func (c *Conn) Close() error {
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.ws.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Millisecond)) // a full socket takes none
	return c.ws.Close()
}

// WriteText sends a text frame.
func (c *Conn) WriteText(payload []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.ws.WriteMessage(websocket.TextMessage, payload)
}

// Next returns the next frame of data. It answers pings by itself, and returns a *websocket.CloseError for the server's close frame, or
// where the connection ends without one (1006).
func (c *Conn) Next() (Piece, error) {
	_, in, err := c.ws.NextReader()
	if err == nil {
		c.payload.Reset()
		_, err = c.payload.ReadFrom(in)
	}
	if err != nil {
		return Piece{}, err
	}
	size := 2 + c.payload.Len() // RFC 6455, section 5.2
	if c.payload.Len() > 125 {
		size += 2
	}
	if c.payload.Len() > 1<<16-1 {
		size += 6
	}
	return Piece{c.payload.Bytes(), 1, size}, nil
}

// drainedSpeaks is how often a drained WebSocket says that it is there: ledgerd gives a silent client up after a minute, and no ping
// is known in bytes that are only counted.
const drainedSpeaks = 20 * time.Second

// drained is a connection of which only the bytes are counted.
type drained struct {
	io.ReadCloser
	ws            *websocket.Conn // that it belongs to; nil: none
	spoke         time.Time
	frames, bytes int64 // so many frames are so many bytes
	read          int64
	buf           []byte
}

// Drain returns a stream of which only the bytes are counted: so many of them are so many frames, without a rest in the
// long run. Nothing may have come before.
func Drain(conn io.ReadCloser, frames, bytes int) Stream { return drain(conn, nil, frames, bytes) }

func drain(conn io.ReadCloser, ws *websocket.Conn, frames, bytes int) Stream {
	const most = 64 << 10 // with less, calls cost more; with more, the buffers of all conns leave the processor's caches
	return &drained{ReadCloser: conn, ws: ws, frames: int64(frames), bytes: int64(bytes), buf: make([]byte, most)}
}

// Next implements Stream.
func (d *drained) Next() (Piece, error) {
	if d.ws != nil && time.Since(d.spoke) > drainedSpeaks {
		d.spoke = time.Now()
		_ = d.ws.WriteControl(websocket.PongMessage, nil, d.spoke.Add(time.Second)) // whoever reads sees that the socket is broken
	}
	n, err := d.Read(d.buf)
	before := d.read * d.frames / d.bytes
	d.read += int64(n)
	return Piece{Frames: int(d.read*d.frames/d.bytes - before), Bytes: n}, err
}
