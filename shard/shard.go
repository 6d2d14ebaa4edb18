package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/shard/giveway"
)

// ErrFolded says that the asked version was folded into a newer one: ask again at
// a newer version. It matches ledger.ErrUnavailable.
var ErrFolded = fmt.Errorf("version no longer held: %w", ledger.ErrUnavailable)

// errBusy says that the queries' lane is full, errStopped that the shard ended.
var (
	errBusy    = fmt.Errorf("shard mailbox is full: %w", ledger.ErrUnavailable)
	errStopped = fmt.Errorf("shard stopped: %w", ledger.ErrUnavailable)
	errLate    = fmt.Errorf("no answer before the deadline: %w", ledger.ErrUnavailable)
)

const (
	// queryLane bounds the questions that wait for a shard. At some microseconds each, a
	// full lane is answered well within the deadline of its last; past that more waiting
	// helps nobody, so the asker is refused at once.
	queryLane = 4096
	// workLane bounds the work that waits; the sequencer waits for room. It is up to three
	// blocks ahead of what it has collected, and a fold may lie before a block: more is never useful.
	workLane = 4
)

// Shard owns one range of the key space.
type Shard struct {
	queries chan query
	work    chan order
	done    chan struct{}  // closed when Run returns
	way     giveway.Worker // which only Run takes

	// mu is held while the state is in use: by Run during a slice of work or while it answers queries, or by an
	// asker that looks an account up in place. It is locked before Run, and for good after it.
	mu    sync.Mutex
	state *state

	counters *Counters // of whatever state there is
}

// query is a [question], whatever it is about.
type query interface{ run(*state) }

// order is a job and whom to tell when it is done.
type order struct {
	job  job
	done chan<- struct{}
}

// New returns shard number self of so many, without anything in it. It starts nothing.
func New(self, shards int) *Shard {
	state := newState(self, shards)
	s := &Shard{
		queries:  make(chan query, queryLane),
		work:     make(chan order, workLane),
		done:     make(chan struct{}),
		state:    state,
		counters: state.counters,
	}
	s.mu.Lock()
	return s
}

// SetFilter has the shard hold the accounts alone that the filter wants. It is called before Run and
// Restore, and is the same for all shards and for as long as the state is held.
func (s *Shard) SetFilter(f *ledger.Filter) { s.state.filter = f }

// Counters say how much the shard holds. Any goroutine may call it, also during Restore.
func (s *Shard) Counters() *Counters { return s.counters }

// MailboxDepth returns how many queries wait.
func (s *Shard) MailboxDepth() int { return len(s.queries) }

// Run answers queries and does work in the order it was sent until ctx ends. It returns an
// error only when the shard broke: its state is then suspect and must not be used.
func (s *Shard) Run(ctx context.Context) (err error) {
	defer close(s.done)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("shard %d broke: %v\n%s", s.state.self, p, debug.Stack())
		}
	}()
	s.way.Open()
	defer s.way.Close()
	s.mu.Unlock()
	for {
		select {
		case q := <-s.queries:
			s.mu.Lock()
			q.run(s.state)
			s.answerWaiting()
			s.mu.Unlock()
			// Whoever is about to ask goes first: then several questions are answered for one
			// wake, which costs more than looking an account up.
			giveway.Turn()
		case o := <-s.work:
			s.do(o)
		case <-ctx.Done():
			s.mu.Lock()
			return nil
		}
	}
}

// do works in slices and lets waiting queries and other goroutines in between.
func (s *Shard) do(o order) {
	for s.slice(o.job) {
		s.way.Pass()
	}
	if o.done != nil {
		o.done <- struct{}{}
	}
}

// slice does a part of a job, and reports whether there is more of it.
func (s *Shard) slice(j job) (more bool) {
	s.mu.Lock()
	if more = j.step(s.state); more {
		s.answerWaiting()
	} else {
		s.state.count()
		s.state.shed()
	}
	s.mu.Unlock() // not after a panic: a broken state is never read again
	return more
}

// answerWaiting serves the queries that wait now; those that come meanwhile are for
// the next time, so that work goes on however many readers there are.
func (s *Shard) answerWaiting() {
	for n := len(s.queries); n > 0; n-- {
		(<-s.queries).run(s.state)
	}
}

// Task is work that was sent and may not be done yet.
type Task struct {
	shard *Shard
	done  chan struct{}
	out   *Applied
}

// Wait returns what the shard did, once it did it.
func (t *Task) Wait() (*Applied, error) {
	select {
	case <-t.done:
		return t.out, nil
	case <-t.shard.done:
		return nil, errors.New("shard stopped with work to do")
	}
}

// ApplyBlock applies the shard's part of b as version v, unseen by every read below it.
func (s *Shard) ApplyBlock(v ledger.Version, b *ledger.Block) *Task {
	j := &apply{version: v, taught: ledger.BlockProvenance(b.Slot), writes: b.Accounts, mints: b.Mints}
	return s.send(j, &j.result)
}

// ApplyBase learns base state as a version. Direct puts it below every version that
// is held; it is for the time before the first block, when nobody reads.
func (s *Shard) ApplyBase(v ledger.Version, base *ledger.BaseState, direct bool) *Task {
	j := &apply{version: v, direct: direct, taught: ledger.BaseProvenance(base.Slot), writes: base.Accounts, mints: base.Mints, base: base}
	return s.send(j, &j.result)
}

// Rollback restores, as version v, what stood before version first.
func (s *Shard) Rollback(v, first ledger.Version) *Task {
	j := &rollback{version: v, first: first}
	return s.send(j, &j.result)
}

// Fold moves everything up to version to into the base and drops tombstones of slots below tombstonesBelow.
// Nobody waits for it.
func (s *Shard) Fold(to ledger.Version, tombstonesBelow ledger.Slot) {
	select {
	case s.work <- order{job: &fold{to: to, tombstonesBelow: tombstonesBelow}}:
	case <-s.done:
	}
}

func (s *Shard) send(j job, out *Applied) *Task {
	t := &Task{shard: s, done: make(chan struct{}, 1), out: out}
	select {
	case s.work <- order{j, t.done}:
	case <-s.done:
	}
	return t
}
