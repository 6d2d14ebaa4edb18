package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"ledgerd/bench/wsclient"
)

const (
	hubQueue     = 256 // messages that wait for a client
	hubWriteWait = 10 * time.Second
)

// hubServer is fed messages, each after its length in two bytes, little endian.
type hubServer struct {
	*child
	batch  []byte
	frames int
}

func startHub(ctx context.Context, c *Config) (Server, error) {
	s, err := startChild(ctx, c, "hub")
	if err != nil {
		return nil, err
	}
	var batch []byte
	for _, m := range c.Messages {
		batch = binary.LittleEndian.AppendUint16(batch, uint16(len(m)))
		batch = append(batch, m...)
	}
	return &hubServer{s, batch, len(c.Messages)}, nil
}

// BatchFrames implements Server.
func (s *hubServer) BatchFrames() int { return s.frames }

// Publish implements Server.
func (s *hubServer) Publish() error {
	_, err := s.feed.Write(s.batch)
	return err
}

// Dial implements Server.
func (s *hubServer) Dial(ctx context.Context) (Subscriber, error) {
	return WebSocket(ctx, "ws://"+s.addr+"/", func(*wsclient.Conn) error { return nil }) // see hub
}

// WebSocket connects a subscriber to any server that speaks it. known waits until the server
// tells it all that is published.
func WebSocket(ctx context.Context, url string, known func(*wsclient.Conn) error) (Subscriber, error) {
	conn, err := wsclient.Dial(ctx, url, wsclient.Options{ReadBytes: readBytes})
	if err != nil {
		return nil, err
	}
	if err := known(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return webSocket{conn}, nil
}

type webSocket struct{ *wsclient.Conn }

// Drain implements Subscriber.
func (s webSocket) Drain(visit func(bytes, frames int)) error {
	return s.Conn.Drain(func(batch []byte, frames int) { visit(len(batch), frames) })
}

// hub is the server as the chat example of the library has it, but for two things: it waits
// for a client whose channel is full instead of dropping it, and it knows a client before the
// handshake is answered. So nobody misses anything.
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
	upgrader := websocket.FastHTTPUpgrader{}
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

// write is a client's own goroutine.
func (c *hubClient) write(conn *websocket.Conn) {
	for {
		select {
		case message := <-c.send:
			_ = conn.SetWriteDeadline(time.Now().Add(hubWriteWait))
			if conn.WriteMessage(websocket.TextMessage, message) != nil {
				_ = conn.Close() // which ends the reader
				return
			}
		case <-c.gone:
			return
		}
	}
}

// read waits for the client to go.
func (c *hubClient) read(conn *websocket.Conn) {
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}
