package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// sharedLedger is a shared log in memory: one order of commits, and one writer at a time, as the
// test wants.
type sharedLedger struct {
	mu      sync.Mutex
	commits [][][]byte // records as they are encoded
	first   []ledger.Version
	writer  *member // who may commit
	heir    *member // who becomes the writer when it has followed everything
	changed chan struct{}

	unreachable bool // by who joins now

	// before is asked before a commit is appended: by an error it is not. The mutex is held.
	before func(m *member, commit []*ledger.Record) error
}

func newSharedLedger() *sharedLedger { return &sharedLedger{changed: make(chan struct{})} }

// join returns a new member of the log.
func (l *sharedLedger) join() *member {
	return &member{log: l, cut: l.unreachable}
}

func (l *sharedLedger) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// grant has m become the writer once it has followed everything; nil: nobody.
func (l *sharedLedger) grant(m *member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grantLocked(m)
}

func (l *sharedLedger) grantLocked(m *member) {
	l.writer, l.heir = nil, m
	l.wakeLocked()
}

// records returns everything in the log.
func (l *sharedLedger) records() (all []*ledger.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.commits {
		all = append(all, decoded(c)...)
	}
	return all
}

func (l *sharedLedger) appendLocked(commit []*ledger.Record) {
	var encoded [][]byte
	for _, r := range commit {
		encoded = append(encoded, codec.AppendRecord(nil, r))
	}
	l.commits = append(l.commits, encoded)
	l.first = append(l.first, commit[0].Version)
	l.wakeLocked()
}

func decoded(commit [][]byte) (records []*ledger.Record) {
	for _, b := range commit {
		r, err := codec.DecodeRecord(b)
		if err != nil {
			panic(err)
		}
		records = append(records, r)
	}
	return records
}

// member is one node's end of the log.
type member struct {
	log *sharedLedger

	mu       sync.Mutex
	cut      bool // it reaches nothing
	known    bool // it knows, and has since it waits at the end, that it holds everything
	knew     time.Time
	resigned bool
	taken    int // commits
	// damage may change a commit on its way to this node.
	damage func([]*ledger.Record) []*ledger.Record
	fails  error // what Follow ends with at the end of the log
}

func (m *member) Resign() {
	m.mu.Lock()
	m.resigned = true
	m.mu.Unlock()
}

// cutOff parts the member from the log, or puts it back.
func (m *member) cutOff(cut bool) {
	m.mu.Lock()
	m.cut = cut
	m.setKnownLocked(m.known && !cut)
	m.mu.Unlock()
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	m.log.wakeLocked()
}

func (m *member) setKnownLocked(known bool) {
	if m.known && !known {
		m.knew = time.Now()
	}
	m.known = known
}

func (m *member) Behind() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.known:
		return 0
	case m.knew.IsZero():
		return math.MaxInt64
	}
	return time.Since(m.knew)
}

func (m *member) Follow(ctx context.Context, from ledger.LogPoint, take func([]*ledger.Record) error) error {
	if err := m.reach(ctx); err != nil {
		return err
	}
	at, skip, err := m.log.place(from)
	if err != nil {
		return err
	}
	for {
		commit, more, leads, changed := m.next(at)
		switch {
		case leads:
			return nil
		case more:
			records := decoded(commit)[skip:]
			if skip, at = 0, at+1; len(records) == 0 {
				continue
			}
			if m.damage != nil {
				records = m.damage(records)
			}
			if err := take(records); err != nil {
				return err
			}
			m.taken++
			continue
		case m.fails != nil:
			return m.fails
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reach waits until the log can be reached.
func (m *member) reach(ctx context.Context) error {
	for {
		m.log.mu.Lock()
		changed := m.log.changed
		m.mu.Lock()
		cut := m.cut
		m.mu.Unlock()
		m.log.mu.Unlock()
		if !cut {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// place finds where a point is.
func (l *sharedLedger) place(from ledger.LogPoint) (at, skip int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from.Version == 0 {
		return 0, 0, nil
	}
	for i, c := range l.commits {
		if last := l.first[i] + ledger.Version(len(c)) - 1; from.Version > last {
			continue
		}
		skip = int(from.Version-l.first[i]) + 1
		if r := decoded(c)[skip-1]; ledger.PointAfter(r) != from {
			return 0, 0, fmt.Errorf("record %d is %+v in the log and not %+v", from.Version, ledger.PointAfter(r), from)
		}
		return i, skip, nil
	}
	return 0, 0, fmt.Errorf("the log was shortened: it does not reach record %d", from.Version)
}

// next returns the commit at a place, or says that the member has become the writer, or returns what
// is closed when that may have changed.
func (m *member) next(at int) (commit [][]byte, more, leads bool, changed <-chan struct{}) {
	l := m.log
	l.mu.Lock()
	defer l.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.cut:
	case at < len(l.commits):
		m.setKnownLocked(false)
		return l.commits[at], true, false, nil
	default:
		m.setKnownLocked(true)
		if l.heir == m {
			l.writer, l.heir = m, nil
			return nil, false, true, nil
		}
	}
	return nil, false, false, l.changed
}

var errLost = errors.New("nats://10.0.0.1:4222: the stream is gone")

func (m *member) Commit(ctx context.Context, commit []*ledger.Record) error {
	l := m.log
	for {
		l.mu.Lock()
		m.mu.Lock()
		cut := m.cut
		m.mu.Unlock()
		changed := l.changed
		if l.writer != m {
			l.mu.Unlock()
			return ledger.ErrDeposed
		}
		if !cut {
			var err error
			if l.before != nil {
				err = l.before(m, commit)
			}
			if err == nil {
				l.appendLocked(commit)
			}
			l.mu.Unlock()
			return err
		}
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
