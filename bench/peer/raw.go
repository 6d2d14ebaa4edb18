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

// startRaw starts one that is fed blocks. A batch is as many as hold the messages. To a subscriber a block is a frame.
func startRaw(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	size := 0
	for _, m := range c.Messages {
		size += len(m)
	}
	blocks := (size + rawBlockBytes - 1) / rawBlockBytes
	return startFed(ctx, c, p.Name, make([]byte, blocks*rawBlockBytes), blocks, dialRaw)
}

func dialRaw(ctx context.Context, address string) (listen.Stream, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
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
