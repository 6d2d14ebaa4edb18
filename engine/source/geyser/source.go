package geyser

import (
	"context"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// Source follows one node, or one of several at a time.
type Source struct {
	config Config
	stats  upstream.Stats

	// Of Run's goroutine.
	node    int      // the one of config.Addresses that is followed
	secrets []string // that it was sent
}

// New returns a source that does nothing yet.
func New(c Config) *Source {
	return &Source{config: c.withDefaults()}
}

// Info says what the sequencer has to know of the source.
func (s *Source) Info() ledger.SourceInfo {
	scheme := "http"
	if s.config.TLS != nil {
		scheme = "https"
	}
	return ledger.SourceInfo{Name: "geyser:" + scheme + "://" + s.config.Addresses[0], Live: true, Stream: true}
}

// Peers returns 1 while there is a connection over which something came, else 0.
func (s *Source) Peers() int { return s.stats.Peers() }

// Trouble says what keeps the source from going on, "" if nothing does.
func (s *Source) Trouble() string { return s.stats.Trouble() }

// Upstream returns the source's figures.
func (s *Source) Upstream() upstream.Snapshot { return s.stats.Snapshot() }

// Run follows the node until ctx ends, and returns its error, or until emit fails, and returns
// that. Whatever the node does, it is tried again.
func (s *Source) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	if from != nil {
		s.stats.Resumed(from.Slot)
	}
	f := newFollower(s, emit)
	nodes := s.config.Addresses
	for ; ; s.node = (s.node + 1) % len(nodes) {
		if len(nodes) > 1 {
			s.stats.Use(nodes, s.node)
		}
		began, before := time.Now(), f.verdict.Placed
		err := f.session(ctx)
		switch {
		case f.failed != nil:
			return f.failed
		case ctx.Err() != nil:
			s.stats.Disconnected(upstream.Closed)
			return ctx.Err()
		}
		f.over(err)
		if f.verdict.Placed > before && time.Since(began) > backoffMax {
			f.backoff.Reset()
		}
		if err := f.backoff.Wait(ctx); err != nil {
			return err
		}
	}
}
