package wal

import (
	"cmp"
	"context"
	"sync"

	"ledgerd/engine/ledger"
)

// queuedChunks bounds how far reading may be ahead of the caller, so that a short stall of one does not stop the other.
const queuedChunks = 2

// replay visits the commits of a log while another goroutine reads, checks and decodes those after them.
func replay(ctx context.Context, c *Config, from ledger.Version, visit func([]Entry) error) (End, error) {
	s, err := newScanner(c.FS, c.Dir, cursorAt(from), nil)
	if err != nil {
		return End{}, err
	}
	inner, cancel := context.WithCancel(ctx)
	decoded := make(chan *chunk, queuedChunks)
	s.chunkBytes, s.out = openChunkBytes, func(c *chunk) error {
		select {
		case decoded <- c:
			return nil
		case <-inner.Done():
			return inner.Err()
		}
	}
	var scanErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(decoded)
		scanErr = s.run(inner)
	})
	total := s.survey.bytes(s.start)
	for chunk := range decoded {
		if err = chunk.deliver(visit); err != nil {
			break
		}
		c.read(chunk.read, total)
	}
	cancel()
	wg.Wait()
	if err := cmp.Or(err, ctx.Err(), scanErr); err != nil {
		return End{}, err
	}
	c.read(total, total) // preallocated space included
	return s.end, nil
}
