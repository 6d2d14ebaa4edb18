package peer

import (
	"bufio"
	"bytes"
	"context"
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

var newline = []byte{'\n'}

// startHub starts one that is fed messages, a line each.
func startHub(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	return startFed(ctx, c, p.Name, append(bytes.Join(c.Messages, newline), '\n'), len(c.Messages), dialHub)
}

func dialHub(ctx context.Context, address string) (listen.Stream, error) {
	conn, err := listen.Dial(ctx, "ws://"+address+"/", listen.Options{ReadBuffer: hubWriteBytes})
	if err != nil {
		return nil, err
	}
	return hubStream{conn}, nil
}

// hubStream counts messages: the lines of a frame.
type hubStream struct{ *listen.Conn }

// Next implements listen.Stream.
func (s hubStream) Next() (listen.Piece, error) {
	p, err := s.Conn.Next()
	p.Frames += bytes.Count(p.Payload, newline)
	return p, err
}

// hub hands messages to clients, as the chat example of the library does: each has a channel. It differs in two things: it
// waits for a client whose channel is full instead of dropping it, and it knows a client before that is told so, so that
// nobody misses anything.
type hub struct{ clients sync.Map }

type hubClient struct {
	send chan []byte
	gone chan struct{} // closed when nobody reads send any more
}

func (h *hub) register() *hubClient {
	c := &hubClient{make(chan []byte, hubQueue), make(chan struct{})}
	h.clients.Store(c, true)
	return c
}

func (h *hub) unregister(c *hubClient) {
	h.clients.Delete(c)
	close(c.gone)
}

func (h *hub) broadcast(message []byte) {
	for c := range h.clients.Range {
		select {
		case c.(*hubClient).send <- message:
		case <-c.(*hubClient).gone:
		}
	}
}

// serveHub tells every client each line. What waits for a client is drained into one frame, as the example does, with a
// larger write buffer than the example's.
func serveHub(ln net.Listener, in io.Reader) error {
	h := new(hub)
	upgrader := websocket.FastHTTPUpgrader{ReadBufferSize: 1 << 10, WriteBufferSize: hubWriteBytes}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		c := h.register()
		err := upgrader.Upgrade(ctx, func(conn *websocket.Conn) {
			defer h.unregister(c)
			go c.write(conn)
			for { // until the client goes
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		})
		if err != nil {
			h.unregister(c)
		}
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		h.broadcast(bytes.Clone(lines.Bytes()))
	}
	return errors.Join(lines.Err(), ln.Close(), <-served)
}

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
