package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"ledgerd/bench/listen"
)

// rawBlockBytes is what ledgerd writes at once when much waits.
const rawBlockBytes = 64 << 10

// rawServer is told the block, and then how many more of it to write, in four bytes, little
// endian. The block is frames of the messages, so that reading costs what it does elsewhere.
// A batch is as many blocks as hold the messages.
type rawServer struct {
	*child
	blocks, frames int // of a batch
}

func startRaw(ctx context.Context, c *Config) (Server, error) {
	s, err := startChild(ctx, c, "raw")
	if err != nil {
		return nil, err
	}
	block, frames := frameBlock(c.Messages)
	if _, err := s.feed.Write(block); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	size := 0
	for _, m := range c.Messages {
		size += len(m)
	}
	blocks := (size + rawBlockBytes - 1) / rawBlockBytes
	return &rawServer{s, blocks, blocks * frames}, nil
}

// frameBlock returns a block of whole frames of the messages, in turns, the last one cut or
// repeated to fill it.
func frameBlock(messages [][]byte) (block []byte, frames int) {
	const mostHeader = 4 // of a frame that fits into a block
	for ; len(block) < rawBlockBytes; frames++ {
		m := messages[frames%len(messages)]
		room := rawBlockBytes - len(block)
		if left := room - mostHeader - len(m); left < 2*mostHeader+len(m) {
			m = bytes.Repeat(m, room/len(m)+1)[:room-mostHeader]
		}
		block = append(block, 0x80|listen.OpText, 126)
		block = binary.BigEndian.AppendUint16(block, uint16(len(m)))
		block = append(block, m...)
	}
	return block, frames
}

// BatchFrames implements Server.
func (s *rawServer) BatchFrames() int { return s.frames }

// Publish implements Server.
func (s *rawServer) Publish() error {
	_, err := s.feed.Write(binary.LittleEndian.AppendUint32(nil, uint32(s.blocks)))
	return err
}

// Dial implements Server.
func (s *rawServer) Dial(ctx context.Context) (listen.Stream, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	// The byte that greets says that the conn is among those that are written to.
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return listen.New(conn), nil
}

// budget is how many blocks everybody shall have been written.
type budget struct {
	mu     sync.Mutex
	raised *sync.Cond
	blocks int
	over   bool
}

// raise adds blocks; none at the end.
func (b *budget) raise(blocks int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocks += blocks
	b.over = blocks == 0
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
	block := make([]byte, rawBlockBytes)
	if _, err := io.ReadFull(in, block); err != nil {
		return err
	}
	b := &budget{}
	b.raised = sync.NewCond(&b.mu)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				writeBlocks(conn, block, b)
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
	b.raise(0)
	_ = ln.Close()
	serving.Wait()
	if err == io.EOF {
		return nil
	}
	return err
}

// writeBlocks writes a subscriber's blocks until the budget ends or the subscriber is gone.
func writeBlocks(conn net.Conn, block []byte, b *budget) {
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
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	}
}
