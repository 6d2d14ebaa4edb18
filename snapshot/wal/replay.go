package wal

import (
	"cmp"
	"context"
	"sync"

	"ledgerd/engine/ledger"
)

// queuedChunks bounds how far reading may be ahead of the decoder and the decoder of
// the caller, so that a short stall of one does not stop the others.
const queuedChunks = 2

// replay visits the commits of a log on three goroutines: one reads and checks frames, one decodes records, the
// caller's visits.
func replay(ctx context.Context, c *Config, from ledger.Version, visit func([]Entry) error) (End, error) {
	s, err := newScanner(c.FS, c.Dir, cursorAt(from), nil)
	if err != nil {
		return End{}, err
	}
	inner, cancel := context.WithCancel(ctx)
	checked, decoded := make(chan *chunk, queuedChunks), make(chan *chunk, queuedChunks)
	s.chunkBytes, s.out = openChunkBytes, func(c *chunk) error { return pass(inner, checked, c) }
	var scanErr, decodeErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(checked)
		scanErr = s.run(inner)
	})
	wg.Go(func() {
		defer close(decoded)
		for c := range checked {
			if decodeErr = s.decode(c, c.entries); decodeErr != nil {
				cancel()
				return
			}
			s.reuse(c)
			if decodeErr = pass(inner, decoded, c); decodeErr != nil {
				return
			}
		}
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

	// The error that stopped the others comes first.
	if err := cmp.Or(err, ctx.Err(), decodeErr, scanErr); err != nil {
		return End{}, err
	}
	c.read(total, total) // preallocated space included
	return s.end, nil
}

// pass sends a chunk on unless ctx ends.
func pass(ctx context.Context, to chan<- *chunk, c *chunk) error {
	select {
	case to <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
