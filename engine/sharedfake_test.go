package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// sharedLedger is a shared log in memory: one order of commits, and one writer at a time, as the
// test wants.
type sharedLedger struct {
	// The facts that the directories of its nodes are tied to are of these.
	info   ledger.SourceInfo
	filter *ledger.Filter
	data   *ledger.DataPrograms

	mu      sync.Mutex    // guards what follows, and the members
	changed chan struct{} // closed and replaced when any of it changes
	commits [][]string    // records as they are encoded, from the one after base on
	founds  bool          // the next node that follows founds it: with what that node holds
	base    ledger.Version
	writer  *member // who may commit
	heir    *member // who becomes the writer when it has followed everything

	unreachable bool // by who joins now

	// before is asked before a commit is appended: by an error it is not. The mutex is held.
	before func(m *member, commit []*ledger.Record) error
}

func newSharedLedger() *sharedLedger {
	return &sharedLedger{info: live(), changed: make(chan struct{})}
}

func (l *sharedLedger) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// await calls try, with the mutex held, whenever something changed, until it returns true or ctx ends.
func (l *sharedLedger) await(ctx context.Context, try func() bool) error {
	for {
		l.mu.Lock()
		done, changed := try(), l.changed
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
func (l *sharedLedger) records() []*ledger.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return decoded(slices.Concat(l.commits...))
}

func (l *sharedLedger) appendLocked(commit []*ledger.Record) {
	l.commits = append(l.commits, encoded(commit))
	l.wakeLocked()
}

func encoded(records []*ledger.Record) (all []string) {
	for _, r := range records {
		all = append(all, string(codec.AppendRecord(nil, r)))
	}
	return all
}

func decoded(commit []string) (records []*ledger.Record) {
	for _, text := range commit {
		r, err := codec.DecodeRecord([]byte(text))
		if err != nil {
			panic(err)
		}
		records = append(records, r)
	}
	return records
}

// placeLocked finds the commit that holds the record after a point, and how many of its records come before that.
func (l *sharedLedger) placeLocked(from ledger.LogPoint) (at, skip int, err error) {
	left := int(from.Version) - int(l.base)
	if left < 0 {
		return 0, 0, ledger.ErrPurged
	}
	if left == 0 {
		return 0, 0, nil
	}
	for at, c := range l.commits {
		if left <= len(c) {
			if left > 0 && ledger.PointAfter(decoded(c)[left-1]) != from {
				err = fmt.Errorf("record %d of the log is not %+v", from.Version, from)
			}
			return at, left, err
		}
		left -= len(c)
	}
	if left > 0 {
		err = fmt.Errorf("the log was shortened: it does not reach record %d", from.Version)
	}
	return 0, 0, err
}

// member is one node's end of the log.
type member struct {
	log *sharedLedger

	cut      bool // it reaches nothing
	known    bool // it knows, and has since it waits at the end, that it holds everything
	knew     time.Time
	resigned atomic.Bool
	// damage may change a commit on its way to this node.
	damage func([]*ledger.Record) []*ledger.Record
	fails  error // what Follow ends with at the end of the log
}

func (m *member) Resign() {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	m.resigned.Store(true)
}

// cutOff parts the member from the log, or puts it back.
func (m *member) cutOff(cut bool) {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	m.cut = cut
	m.setKnownLocked(m.known && !cut)
	m.log.wakeLocked()
}

func (m *member) setKnownLocked(known bool) {
	if m.known && !known {
		m.knew = time.Now()
	}
	m.known = known
}

func (m *member) Behind() time.Duration {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	switch {
	case m.known:
		return 0
	case m.knew.IsZero():
		return math.MaxInt64
	}
	return time.Since(m.knew)
}

func (m *member) Follow(ctx context.Context, from ledger.LogPoint, take func([]*ledger.Record) error) error {
	l := m.log
	var at, skip int
	var err error
	if ended := l.await(ctx, func() bool {
		if !m.cut {
			if l.founds {
				l.base, l.founds = from.Version, false
			}
			at, skip, err = l.placeLocked(from)
		}
		return !m.cut
	}); ended != nil || err != nil {
		return errors.Join(ended, err)
	}
	for {
		var commit []string
		if err := l.await(ctx, func() bool { return !m.cut && m.nextLocked(at, &commit) }); err != nil {
			return err
		}
		if commit == nil {
			return m.fails
		}
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
	}
}

// nextLocked reads the commit at a place. It returns false where there is none yet, and no commit where none is to be
// followed any more.
func (m *member) nextLocked(at int, commit *[]string) bool {
	l := m.log
	if at < len(l.commits) {
		m.setKnownLocked(false)
		*commit = l.commits[at]
		return true
	}
	m.setKnownLocked(true)
	if l.heir == m {
		l.writer, l.heir = m, nil
		return true
	}
	return m.fails != nil
}

var errLost = errors.New("nats://10.0.0.1:4222: the stream is gone")

func (m *member) Commit(ctx context.Context, commit []*ledger.Record) error {
	l := m.log
	var err error
	ended := l.await(ctx, func() bool {
		switch {
		case m.resigned.Load():
			err = errors.New("a node commits after it resigned")
		case l.writer != m:
			err = ledger.ErrDeposed
		case m.cut:
			return false
		case l.before != nil:
			err = l.before(m, commit)
		}
		if err == nil {
			l.appendLocked(commit)
		}
		return true
	})
	return errors.Join(ended, err)
}
