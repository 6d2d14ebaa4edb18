package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"ledgerd/bench/listen"
)

const (
	// rawBlockBytes is what ledgerd writes at once when much waits.
	rawBlockBytes = 64 << 10
	// rawQueue is how many blocks wait for a client. Whoever publishes waits for one whose queue is full.
	rawQueue = 256
)

// startRaw starts one that is fed blocks. A batch is as many as hold the messages. To a subscriber a block is a frame.
func startRaw(ctx context.Context, c *Config, name string, s *Server) error {
	size := 0
	for _, m := range c.Messages {
		size += len(m)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		return err
	}
	err = s.startSelf(ctx, c, name, in)
	_ = in.Close()
	s.atStop(func() error {
		_ = feed.Close() // all of it was read, or is not wanted any more
		return nil
	})
	s.BatchFrames = (size + rawBlockBytes - 1) / rawBlockBytes
	batch := make([]byte, s.BatchFrames*rawBlockBytes)
	s.Dial = func(ctx context.Context) (listen.Stream, error) { return dialRaw(ctx, s.Address.String()) }
	s.Publish = func() error {
		_, err := feed.Write(batch)
		return err
	}
	return err
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
	var mu sync.Mutex
	var clients []chan []byte
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			blocks := make(chan []byte, rawQueue)
			mu.Lock()
			clients = append(clients, blocks)
			mu.Unlock()
			go writeRaw(conn, blocks)
		}
	}()
	for {
		block := make([]byte, rawBlockBytes)
		if _, err := io.ReadFull(in, block); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		mu.Lock()
		all := clients
		mu.Unlock()
		for _, blocks := range all {
			blocks <- block
		}
	}
}

// writeRaw greets a client and writes blocks to it. Those for a client that is gone are dropped.
func writeRaw(conn net.Conn, blocks <-chan []byte) {
	_, err := conn.Write([]byte{0})
	for block := range blocks {
		if err == nil {
			_, err = conn.Write(block)
		}
	}
}
