package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard/giveway"
	"ledgerd/shard/packed"
)

// ErrFolded means that the version of a read is below the folded one; the caller may retry
// at a newer version. It matches ledger.ErrUnavailable.
var ErrFolded = fmt.Errorf("version no longer held: %w", ledger.ErrUnavailable)

// These errors of a query match ledger.ErrUnavailable.
var (
	errBusy    = fmt.Errorf("shard mailbox is full: %w", ledger.ErrUnavailable)
	errStopped = fmt.Errorf("shard stopped: %w", ledger.ErrUnavailable)
	errLate    = fmt.Errorf("no answer before the deadline: %w", ledger.ErrUnavailable)
)

const (
	// queryLane bounds the queries that wait for a shard. A query for accounts takes some microseconds and a page of a list
	// some hundred, so a full lane is answered within the deadline of its last query. Further queries fail with errBusy.
	queryLane = 4096
	// queryTurn bounds how long the shard answers queries at a time while work may wait, and how long it then works without answering any.
	queryTurn = time.Millisecond
	// workLane bounds the work that waits; the sequencer blocks while it is full. The sequencer sends at most
	// three blocks before it collects the result of the first, and a fold may precede a block, so a longer
	// lane would not be used.
	workLane = 4
	// longAnswer is the least duration of a query after which the shard yields to other threads, too. A short list takes less.
	longAnswer = 10 * time.Microsecond
)

// Shard owns one range of the key space.
type Shard struct {
	queries chan message
	work    chan message
	done    chan struct{}  // closed when Run returns
	way     giveway.Worker // Run calls Pass, every query calls Question

	// mu guards state. Run locks it for a slice of work and for answering queries; callers of TryAccount and
	// Accounts share it. It is locked until Run starts and stays locked after Run returns.
	mu    sync.RWMutex
	state *state
}

// message is a query or an item of work. Its sender waits for its reply.
type message interface {
	step(*state) (more bool) // does a slice of it and reports whether there is more
	answered()               // is called after the last slice
}

// reply is the result of a message that was sent, and how to wait for it. A message embeds its reply.
type reply[R any] struct {
	result  R
	err     error
	done    chan struct{}   // closed when result and err are set
	stopped <-chan struct{} // closed when the shard has stopped
}

// Task is a block, base state or rollback that was sent and may not be applied yet.
type Task = reply[Applied]

func (r *reply[R]) answered() { close(r.done) }

// newReply returns the reply of a message to s.
func newReply[R any](s *Shard) reply[R] { return reply[R]{done: make(chan struct{}), stopped: s.done} }

// Wait blocks until the message is done and returns its result. It fails if the shard stops first.
func (r *reply[R]) Wait() (*R, error) {
	select {
	case <-r.done:
		return &r.result, r.err
	case <-r.stopped:
		return nil, errors.New("shard stopped with work to do")
	}
}

// New returns the empty shard number self of the given number of shards. It starts nothing.
func New(self, shards int) *Shard {
	s := &Shard{
		queries: make(chan message, queryLane),
		work:    make(chan message, workLane),
		done:    make(chan struct{}),
		state:   newState(self, shards),
	}
	s.mu.Lock()
	return s
}

// SetFilter makes the shard store only accounts that the filter admits. It must be called before Run and
// Restore, with the same filter for all shards and for as long as their ledger exists.
func (s *Shard) SetFilter(f *ledger.Filter) { s.state.filter = f }

// IndexMints makes the shard list the token accounts of a mint. It must be called before Run and Restore.
func (s *Shard) IndexMints() { s.state.accounts = newAccounts(packed.Kinds) }

// Counters returns the shard's counters. Any goroutine may call it, also during Restore.
func (s *Shard) Counters() *Counters { return &s.state.counters }

// MailboxDepth returns how many queries wait.
func (s *Shard) MailboxDepth() int { return len(s.queries) }

// Run answers queries and does work in the order it was sent until ctx ends. It returns an
// error only after a panic; the lock of the state then stays held, so a broken state is never read.
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
		case m := <-s.work: // work comes first: queries are answered between its slices
			s.do(m)
			continue
		default:
		}
		select {
		case q := <-s.queries:
			began := time.Now()
			s.mu.Lock()
			s.answer(q)
			for len(s.work) == 0 && len(s.queries) > 0 && time.Since(began) < queryTurn {
				s.answer(<-s.queries)
			}
			s.mu.Unlock()
			// Other goroutines run first, so that they can enqueue their queries before this one sleeps: then one
			// wake-up, which costs more than a look-up, serves several queries. Other threads run first only after
			// a long answer, because on a processor that other programs want they take a whole time slice.
			if time.Since(began) < longAnswer {
				runtime.Gosched()
			} else {
				giveway.Turn()
			}
		case m := <-s.work:
			s.do(m)
		case <-ctx.Done():
			s.mu.Lock()
			return nil
		}
	}
}

// do does work in slices. Between two slices it answers queries and yields, in all for no longer than half of what the slices
// took so far: if a query or a yield takes longer, the pauses after the next slices are shorter. The callers that get the answers
// need the processor as well, so the work takes less than twice its time even with the most queries.
func (s *Shard) do(m message) {
	var spare time.Duration // half of the time of the slices, less the time of the pauses between them
	for more := true; more; {
		began := time.Now()
		s.mu.Lock()
		if more = m.step(s.state); !more {
			s.state.tidy()
			m.answered()
		}
		ended := time.Now()
		spare = min(spare+ended.Sub(began)/2, queryTurn)
		for len(s.queries) > 0 && time.Since(ended) < spare {
			s.answer(<-s.queries)
		}
		s.mu.Unlock() // not deferred: after a panic the lock stays held
		if more {
			s.way.Pass()
		}
		spare = max(spare-time.Since(ended), -queryTurn)
	}
}

// answer answers a query, which is one slice.
func (s *Shard) answer(q message) {
	q.step(s.state)
	q.answered()
}

// send queues work and returns when the lane has room for it.
func (s *Shard) send(m message) {
	select {
	case s.work <- m:
	case <-s.done:
	}
}

// Point is the version and the horizon of the record that a message belongs to (see [ledger.Record]).
type Point struct {
	Version ledger.Version
	Horizon ledger.Slot
}

// ApplyBlock sends the shard's part of b. Reads below its version do not see it.
func (s *Shard) ApplyBlock(at Point, b *ledger.Block) *Task {
	m := s.newApply(at, ledger.BlockProvenance(b.Slot), b.Accounts, b.Mints)
	m.result.Updates = make([]ledger.Update, 0, len(m.todo))
	s.send(m)
	return &m.reply
}

// ApplyBase sends base state. With direct it goes into the base layer, which is allowed
// only while the overlay is empty and nobody reads.
func (s *Shard) ApplyBase(at Point, base *ledger.BaseState, direct bool) *Task {
	m := s.newApply(at, ledger.BaseProvenance(base.Slot), base.Accounts, base.Mints)
	m.base, m.direct = base, direct
	s.send(m)
	return &m.reply
}

// Rollback restores, as a version of its own, the state before version first, with later base state merged in again.
func (s *Shard) Rollback(at Point, first ledger.Version) *Task {
	m := &rollback{reply: newReply[Applied](s), Point: at, first: first}
	s.send(m)
	return &m.reply
}

// Fold moves all values up to version to into the base and drops tombstones of slots below horizon. No record after that
// version may have a lower horizon. Fold returns when the work is queued.
func (s *Shard) Fold(to ledger.Version, horizon ledger.Slot) {
	s.send(&fold{newReply[struct{}](s), Point{to, horizon}})
}
