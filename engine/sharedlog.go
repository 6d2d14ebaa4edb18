package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

// SharedLog is a log that several nodes hold together: one of them at a time writes it, and the
// others follow. Beside it each node keeps a log of its own, which is never ahead of it.
type SharedLog interface {
	// Follow passes every commit after the point to take, in order, whole. It returns nil when this node has become the
	// log's writer and everything before was taken; a node that only reads never becomes it. Otherwise it returns ctx's
	// error, what take returned, or why the log cannot be followed (recreated, shortened, purged past the point,
	// damaged). take returns when the commit was carried out, so a fast implementation reads ahead meanwhile.
	Follow(ctx context.Context, from ledger.LogPoint, take func(commit []*ledger.Record) error) error
	// Commit appends a commit after all that was followed or committed before; it returns when the log acknowledged all
	// of it. ledger.ErrDeposed: another node is the writer now, and no node will ever see this commit.
	// It waits while the log cannot be reached; other errors are those of [Log], and final.
	Commit(ctx context.Context, commit []*ledger.Record) error
	// Behind returns for how long the node has not known that it holds the whole log; 0 while it writes itself, and the
	// longest duration there is before it knew for the first time.
	Behind() time.Duration
}

// Resigner is a SharedLog that can let another node become the writer at once.
type Resigner interface {
	// Resign returns at once. Nothing is committed or followed after it.
	Resign()
}

// defaultMaxLag is for how long a node may not know that it holds the whole shared log and still
// be ready for queries: longer than the servers of a log take to elect a leader.
const defaultMaxLag = 15 * time.Second

// sharing is how a node takes part in a shared log.
type sharing struct {
	log    SharedLog // nil: the node is alone
	maxLag time.Duration
	from   ledger.LogPoint // where recovery ended

	leads     atomic.Bool            // this node is the writer
	led       chan struct{}          // closed then
	fenced    atomic.Pointer[string] // why no query is answered any more; nil while they are
	fence     chan struct{}          // closed then
	began     atomic.Int64           // when it began to follow, as engine.age; 0: not yet
	commitsAt atomic.Int64           // since when a commit waits for the log, likewise; 0: none does
}

// writes reports whether what is held comes from the node's own source.
func (s *sharing) writes() bool { return s.log == nil || s.leads.Load() }

// knows reports whether the node has known, since age was s.began, that it holds the whole log.
func (s *sharing) knows(age int64) bool {
	began, behind := s.began.Load(), s.log.Behind()
	return began != 0 && behind <= time.Duration(age-began)
}

// lag returns why balancers should send the node no queries, though it answers them: "" where it keeps up.
func (s *sharing) lag(age int64) string {
	if s.log == nil {
		return ""
	}
	if at := s.commitsAt.Load(); at != 0 && time.Duration(age-at) > s.maxLag {
		return fmt.Sprintf("ingest waits: the shared log has not taken a block for more than %v", s.maxLag)
	}
	switch behind := s.log.Behind(); {
	case !s.knows(age):
		return "starting: the node has not caught up with the shared log yet"
	case behind > s.maxLag:
		return fmt.Sprintf("behind the shared log: for %v the node has not known that it holds all of it; reads go on", behind.Truncate(time.Second))
	}
	return ""
}

// resign lets another node become the writer.
func (s *sharing) resign() {
	if r, can := s.log.(Resigner); can {
		r.Resign()
	}
}

// share appends a batch to the shared log, once: a commit that is tried again because the local log has no space
// is in the shared log already.
func (e *Engine) share(ctx context.Context, b *batch) error {
	s := &e.shared
	if s.log == nil || b.shared {
		return nil
	}
	s.commitsAt.Store(e.age())
	err := s.log.Commit(ctx, b.Records)
	s.commitsAt.Store(0)
	switch {
	case err == nil:
		b.shared = true
		return nil
	case errors.Is(err, ledger.ErrDeposed):
		return fmt.Errorf("slot %d was not committed: %w", b.Head.Tip(ledger.Processed).Slot, err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	}
	return &sharedLogError{err: fmt.Errorf("cannot commit slot %d to the shared log: %w", b.Head.Tip(ledger.Processed).Slot, err)}
}

// sharedLogError says that the shared log failed for good: a commit that it has not acknowledged stays
// unseen.
type sharedLogError struct {
	following bool
	err       error
}

func (e *sharedLogError) Error() string { return e.err.Error() }
func (e *sharedLogError) Unwrap() error { return e.err }

// why returns the words for health checks, which name no hosts.
func (e *sharedLogError) why() string {
	if e.following {
		return "the shared log cannot be followed; reads go on until a person looks"
	}
	return "ingest stopped: the shared log failed; reads go on until a person looks"
}
