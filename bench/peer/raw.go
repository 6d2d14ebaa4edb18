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

// rawQueue is how many batches wait for a subscriber.
const rawQueue = 1 << 10

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

// serveRaw writes blocks to all who connect, a goroutine each.
func serveRaw(ln net.Listener, in io.Reader) error {
	block := make([]byte, rawBlockBytes)
	if _, err := io.ReadFull(in, block); err != nil {
		return err
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var subscribers []chan int // of how many blocks more to write
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			more := make(chan int, rawQueue)
			mu.Lock()
			subscribers = append(subscribers, more)
			mu.Unlock()
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				_, err := conn.Write([]byte{0})
				for blocks := range more { // one that is gone is told, and written to no more
					for i := 0; i < blocks && err == nil; i++ {
						_, err = conn.Write(block)
					}
				}
			})
		}
	})
	var err error
	for err == nil {
		var more [4]byte
		if _, err = io.ReadFull(in, more[:]); err == nil {
			mu.Lock()
			for _, s := range subscribers {
				s <- int(binary.LittleEndian.Uint32(more[:]))
			}
			mu.Unlock()
		}
	}
	_ = ln.Close()
	for _, s := range subscribers {
		close(s)
	}
	serving.Wait()
	if err == io.EOF {
		return nil
	}
	return err
}
