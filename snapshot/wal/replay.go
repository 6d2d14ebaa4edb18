package wal

import (
	"cmp"
	"context"
	"sync"

	"ledgerd/engine/ledger"
)

const (
	// openBytes is how much Open reads at once: large enough for the full throughput of the disk's
	// read-ahead, small enough that a few such buffers do not matter.
	openBytes = 2 << 20
	// queuedCommits bounds the commits that are read ahead of the caller, so that a short stall of one side does not stop the other.
	// More would take memory: some commits have MiBs.
	queuedCommits = 4
)

// replay visits the commits of a log while another goroutine reads, checks and decodes those after them.
func replay(ctx context.Context, c *Config, from ledger.Version, visit func([]Entry) error) (End, error) {
	s, err := newScanner(c.FS, c.Dir, cursorAt(from), nil, openBytes)
	if err != nil {
		return End{}, err
	}
	inner, cancel := context.WithCancel(ctx)
	decoded := make(chan []Entry, queuedCommits)
	s.out = func(commit []Entry) error {
		select {
		case decoded <- commit:
			return nil
		case <-inner.Done():
			return inner.Err()
		}
	}
	var scanErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(decoded)
		scanErr = s.scan()
	})
	total := s.survey.bytes(s.start)
	for commit := range decoded {
		if err = visit(commit); err != nil {
			break
		}
		last := &commit[len(commit)-1]
		c.read(int64(last.Position-s.survey.segments[s.start].position)+int64(last.SizeBytes), total)
	}
	cancel()
	wg.Wait()
	if err := cmp.Or(err, ctx.Err(), scanErr); err != nil {
		return End{}, err
	}
	c.read(total, total) // preallocated space included
	return s.end, nil
}
