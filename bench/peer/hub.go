package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"ledgerd/bench/listen"
)

const (
	hubQueue     = 256 // messages that wait for a client
	hubWriteWait = 10 * time.Second
	// hubWriteBytes holds a full queue, so that each write is one frame and one call of the kernel. The example has 1 KiB.
	hubWriteBytes = 64 << 10
)

// hubServer is fed messages, each after its length in two bytes, little endian.
type hubServer struct {
	*child
	batch  []byte
	frames int
}

func startHub(ctx context.Context, c *Config) (Server, error) {
	child, err := startChild(ctx, c, "hub")
	if err != nil {
		return nil, err
	}
	s := &hubServer{child: child, frames: len(c.Messages)}
	for _, m := range c.Messages {
		s.batch = append(binary.LittleEndian.AppendUint16(s.batch, uint16(len(m))), m...)
	}
	return s, nil
}

// BatchFrames implements Server.
func (s *hubServer) BatchFrames() int { return s.frames }

// Publish implements Server.
func (s *hubServer) Publish() error {
	_, err := s.feed.Write(s.batch)
	return err
}

// Dial implements Server.
func (s *hubServer) Dial(ctx context.Context) (listen.Stream, error) {
	conn, err := listen.Dial(ctx, "ws://"+s.addr+"/", listen.Options{})
	if err != nil {
		return nil, err
	}
	return hubStream{conn}, nil
}

// hubStream counts messages: the lines of a frame.
type hubStream struct{ *listen.Conn }

// Drain implements listen.Stream.
func (s hubStream) Drain(visit func(listen.Batch)) error {
	return s.Conn.Drain(func(b listen.Batch) {
		b.Each(func(payload []byte) { b.Frames += bytes.Count(payload, newline) })
		visit(b)
	})
}

// hub is the server as the chat example of the library has it: what waits for a client is drained into one frame, with line
// ends between the messages. It differs in three things: it waits for a client whose channel is full instead of dropping
// it, it knows a client before the handshake is answered, so that nobody misses anything, and its write buffer is larger.
type hub struct {
	mu      sync.Mutex
	clients map[*hubClient]bool
}

type hubClient struct {
	send chan []byte
	gone chan struct{} // closed when nobody reads send any more
}

func (h *hub) register(c *hubClient) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients[c] = true
}

func (h *hub) unregister(c *hubClient) {
	close(c.gone)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
}

func (h *hub) broadcast(message []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		select {
		case c.send <- message:
		case <-c.gone:
		}
	}
}

// serveHub tells every client each message.
func serveHub(ln net.Listener, in io.Reader) error {
	h := &hub{clients: map[*hubClient]bool{}}
	upgrader := websocket.FastHTTPUpgrader{ReadBufferSize: 1 << 10, WriteBufferSize: hubWriteBytes}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		c := &hubClient{make(chan []byte, hubQueue), make(chan struct{})}
		h.register(c)
		err := upgrader.Upgrade(ctx, func(conn *websocket.Conn) {
			go c.write(conn)
			c.read(conn)
			h.unregister(c)
		})
		if err != nil {
			h.unregister(c)
		}
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	err := h.readFeed(in)
	return errors.Join(err, ln.Close(), <-served)
}

func (h *hub) readFeed(in io.Reader) error {
	feed := bufio.NewReaderSize(in, 64<<10)
	for {
		var size [2]byte
		if _, err := io.ReadFull(feed, size[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		message := make([]byte, binary.LittleEndian.Uint16(size[:]))
		if _, err := io.ReadFull(feed, message); err != nil {
			return err
		}
		h.broadcast(message)
	}
}

var newline = []byte{'\n'}

// write is a client's own goroutine.
func (c *hubClient) write(conn *websocket.Conn) {
	for {
		select {
		case message := <-c.send:
			if c.drain(conn, message) != nil {
				_ = conn.Close() // which ends the reader
				return
			}
		case <-c.gone:
			return
		}
	}
}

// drain writes a message, and with it all that wait.
func (c *hubClient) drain(conn *websocket.Conn, message []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(hubWriteWait))
	w, err := conn.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	_, err = w.Write(message)
	for range len(c.send) {
		_, err1 := w.Write(newline)
		_, err2 := w.Write(<-c.send)
		err = errors.Join(err, err1, err2)
	}
	return errors.Join(err, w.Close())
}

// read waits for the client to go.
func (c *hubClient) read(conn *websocket.Conn) {
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}
