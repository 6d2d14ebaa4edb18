package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

// wholeWithin is how long ago a node must have held the whole log to take the lease: it asks each lookInterval.
const wholeWithin = 2 * time.Second

// Log is the log that the nodes share. Follow and Commit are for one goroutine at a time.
type Log struct {
	cluster *Cluster

	// What follows is Follow's and Commit's.
	stream  jetstream.Stream
	at      cursor   // of the writer
	encoder *encoder // nil until this node became the writer
	unit    int      // how many messages it sends at once
	failed  error    // why nothing more is committed
	nonce   [nonceBytes]byte

	handover ledger.Guarded[handover] // of this node's term, once it became the writer
	lease    *lease                   // it runs where the node may write
	deposed  chan struct{}
	deposing sync.Once

	mu     sync.Mutex
	opened time.Time
	known  time.Time // when this node knew last that it held the whole log; zero: never
	ahead  streamEnd // that the node is to reach
	taken  uint64    // the newest sequence taken in
}

// streamEnd is where most of the servers knew the stream to end at a time; the zero value: no end.
type streamEnd struct {
	at   time.Time
	last uint64
}

func newLog(c *Cluster) *Log {
	l := &Log{cluster: c, opened: time.Now(), deposed: make(chan struct{}), lease: &lease{cluster: c, wrote: make(chan struct{}, 1)}}
	l.lease.isWhole = l.heldWholeLog // of many that wait, it is for one that can write at once
	rand.Read(l.nonce[:])            // never fails
	return l
}

// Deposed returns a channel that is closed when this node, having become the writer, learns that another one is: also when
// it has nothing to commit. It is then to begin anew, as a standby, from what its own log holds.
func (l *Log) Deposed() <-chan struct{} { return l.deposed }

// Follow hands every commit after a point to take, in order, whole; of a commit that the point lies in, what is after it.
// It returns nil when this node has become the writer and everything before was taken; a node that only reads never becomes
// it. Otherwise it returns ctx's error, what take returned, or why the stream cannot be followed: see the package's errors.
func (l *Log) Follow(ctx context.Context, from ledger.LogPoint, take func(commit []*ledger.Record) error) error {
	if l.encoder != nil {
		return errors.New("the log is followed by its own writer")
	}
	f := follower{log: l, from: from, hand: take}
	if err := f.run(ctx); err != nil {
		return fmt.Errorf("cannot follow stream %s: %w", l.cluster.config.Stream, err)
	}
	return nil
}

// Behind returns for how long this node has not known that it holds the whole log: that it had taken all that the stream
// held, as told by a server that leads most of the others. It is 0 while the node writes itself and renews its lease.
func (l *Log) Behind() time.Duration {
	l.mu.Lock()
	known := l.known
	if known.IsZero() {
		known = l.opened
	}
	l.mu.Unlock()
	if Role(l.cluster.stats.role.Load()) == Writer {
		if l.lease.held() {
			return 0
		}
		if renewed := l.lease.now.Load().renewed; renewed.After(known) {
			known = renewed
		}
	}
	return max(0, time.Since(known))
}

// noteEnd notes that the stream ended at a sequence at a time, as most of the servers know it: one that lags behind them, such as
// the one that a consumer is on may, tells of less.
func (l *Log) noteEnd(at time.Time, last uint64) {
	l.cluster.stats.last.Store(last)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.taken >= last:
		l.knownLocked(at)
	case l.ahead.at.IsZero(): // else that one is reached first, and the next answer tells of more
		l.ahead = streamEnd{at, last}
	}
}

// noteTaken notes that everything up to a sequence was taken.
func (l *Log) noteTaken(sequence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = sequence
	if !l.ahead.at.IsZero() && sequence >= l.ahead.last {
		l.knownLocked(l.ahead.at)
		l.ahead = streamEnd{}
	}
}

// heldWholeLog reports whether the node held the whole log so short a while ago.
func (l *Log) heldWholeLog(within time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.known.IsZero() && time.Since(l.known) <= within
}

func (l *Log) knownLocked(at time.Time) {
	if at.After(l.known) {
		l.known = at
	}
}

func (l *Log) setRole(r Role) { l.cluster.stats.role.Store(uint32(r)) }

// Resign gives up writing the log for good, so that another node need not wait until the lease ran out. It returns at once.
// Nothing is committed or followed after it.
func (l *Log) Resign() {
	l.lease.resign()
	l.setRole(Reader)
}

// becomeWriter makes the node the writer, from a position in the stream on, which is after the newest block, and watches whether it stays it.
func (l *Log) becomeWriter(at cursor, stream jetstream.Stream, newest written) error {
	encoder, err := newEncoder()
	if err != nil {
		return err
	}
	l.at, l.stream, l.encoder, l.unit = at, stream, encoder, 1
	if stream.CachedInfo().Config.AllowAtomicPublish {
		l.unit = unitMessages
	}
	l.handover.Set(handover{From: l.cluster.writerIn(at.epoch - 1), Last: newest})
	l.cluster.stats.epoch.Store(at.epoch)
	l.cluster.stats.since.Store(time.Now().Unix())
	l.setRole(Writer)
	l.cluster.logger.Info("writes the log", "stream", l.cluster.config.Stream, "epoch", at.epoch, "after_version", uint64(at.point.Version))
	lease := l.lease.now.Load()
	if !lease.has {
		l.markDeposed()
		return nil
	}
	l.cluster.running.Go(func() {
		select {
		case <-lease.lost:
			l.markDeposed()
		case <-l.cluster.ctx.Done():
		}
	})
	return nil
}

// markDeposed notes that another node is the writer.
func (l *Log) markDeposed() {
	l.deposing.Do(func() {
		l.setRole(Deposed)
		l.cluster.logger.Error("another node became the writer of the log: this one must begin anew")
		close(l.deposed)
	})
}
