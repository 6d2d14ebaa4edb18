package peer

import (
	"context"
	"errors"
	"io"
	"net"

	"ledgerd/bench/listen"
)

// rawBlockBytes is what ledgerd writes at once when much waits.
const rawBlockBytes = 64 << 10

// rawServer is fed blocks. A batch is as many as hold the messages. To a subscriber a block is a frame.
type rawServer struct{ *child }

func startRaw(ctx context.Context, c *Config) (Server, error) {
	child, err := startChild(ctx, c, "raw")
	if err != nil {
		return nil, err
	}
	size := 0
	for _, m := range c.Messages {
		size += len(m)
	}
	child.frames = (size + rawBlockBytes - 1) / rawBlockBytes
	child.batch = make([]byte, child.frames*rawBlockBytes)
	return rawServer{child}, nil
}

// Dial implements Server.
func (s rawServer) Dial(ctx context.Context) (listen.Stream, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	// The byte that greets says that the conn is among those that are written to.
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return listen.Drain(conn, 1, rawBlockBytes), nil
}

// serveRaw writes blocks to all who connect, a goroutine each. These end with the process.
func serveRaw(ln net.Listener, in io.Reader) error {
	h := new(hub)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go h.writeRaw(conn)
		}
	}()
	for {
		block := make([]byte, rawBlockBytes)
		if _, err := io.ReadFull(in, block); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		h.broadcast(block)
	}
}

// writeRaw greets a client, and writes blocks to it until it is gone.
func (h *hub) writeRaw(conn net.Conn) {
	c := h.register()
	defer h.unregister(c)
	defer func() { _ = conn.Close() }()
	_, err := conn.Write([]byte{0})
	for err == nil {
		_, err = conn.Write(<-c.send)
	}
}
