package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
)

// rawBlockBytes is what ledgerd writes at once when much waits.
const rawBlockBytes = 64 << 10

// rawServer is told how many blocks more to write, in four bytes, little endian. A batch is as
// many as hold the messages.
type rawServer struct {
	*child
	blocks int // of a batch
}

func startRaw(ctx context.Context, c *Config) (Server, error) {
	s, err := startChild(ctx, c, "raw")
	if err != nil {
		return nil, err
	}
	size := 0
	for _, m := range c.Messages {
		size += len(m)
	}
	return &rawServer{s, (size + rawBlockBytes - 1) / rawBlockBytes}, nil
}

// BatchFrames implements Server: a frame is a block.
func (s *rawServer) BatchFrames() int { return s.blocks }

// Publish implements Server.
func (s *rawServer) Publish() error {
	_, err := s.feed.Write(binary.LittleEndian.AppendUint32(nil, uint32(s.blocks)))
	return err
}

// Dial implements Server.
func (s *rawServer) Dial(ctx context.Context) (Subscriber, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	// The byte that greets says that the conn is among those that are written to.
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &rawSubscriber{conn}, nil
}

type rawSubscriber struct{ net.Conn }

// Drain implements Subscriber.
func (s *rawSubscriber) Drain(visit func(bytes, frames int)) error {
	room := make([]byte, readBytes)
	for part := 0; ; {
		n, err := s.Read(room)
		part += n
		visit(n, part/rawBlockBytes)
		part %= rawBlockBytes
		if err != nil {
			return err
		}
	}
}

// budget is how many blocks everybody shall have been written.
type budget struct {
	mu     sync.Mutex
	raised sync.Cond
	blocks int
	over   bool
}

func (b *budget) raise(blocks int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocks += blocks
	b.raised.Broadcast()
}

func (b *budget) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.raised.Broadcast()
}

// above waits until there are more than so many, or returns that many at the end.
func (b *budget) above(written int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.blocks <= written && !b.over {
		b.raised.Wait()
	}
	return b.blocks
}

// serveRaw writes blocks to all who connect, a goroutine each.
func serveRaw(ln net.Listener, in io.Reader) error {
	b := &budget{}
	b.raised.L = &b.mu
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				writeBlocks(conn, b)
			})
		}
	})
	var err error
	for err == nil {
		var more [4]byte
		if _, err = io.ReadFull(in, more[:]); err == nil {
			b.raise(int(binary.LittleEndian.Uint32(more[:])))
		}
	}
	b.end()
	_ = ln.Close()
	serving.Wait()
	if err == io.EOF {
		return nil
	}
	return err
}

// writeBlocks writes a subscriber's blocks until the budget ends or the subscriber is gone.
func writeBlocks(conn net.Conn, b *budget) {
	b.mu.Lock()
	written := b.blocks
	b.mu.Unlock()
	if _, err := conn.Write([]byte{0}); err != nil {
		return
	}
	for {
		until := b.above(written)
		if until == written {
			return
		}
		for ; written < until; written++ {
			if _, err := conn.Write(rawBlock); err != nil {
				return
			}
		}
	}
}

var rawBlock = make([]byte, rawBlockBytes)
