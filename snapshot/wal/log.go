package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Config says where the log is and how it is kept.
type Config struct {
	FS     vfs.FS
	Dir    string // made if need be, with those above it
	Policy Policy // the zero value syncs every commit
	// SegmentBytes is how large a segment gets; 0 means DefaultSegmentBytes. The space is preallocated. A
	// commit that is larger gets a segment of its size.
	SegmentBytes int64
	OnSync       func(time.Duration)     // called with the duration of each sync of a segment; may be nil
	OnRead       func(read, total int64) // called by Open between calls of visit with the bytes read so far; may be nil
	Logger       *slog.Logger            // nil means slog.Default
}

const (
	// DefaultSegmentBytes is how large a segment gets where Config does not say.
	DefaultSegmentBytes = 64 << 20
	// slowSync is how long a sync may take before the log warns of it: every block
	// waits for its sync.
	slowSync = time.Second
	// keptBufferBytes bounds the buffer that is kept for the next commit. Catching up
	// commits a few MiB at a time.
	keptBufferBytes = 32 << 20
	// saveEvery bounds the time from a commit until newest is replaced, if no other replacement is under way.
	saveEvery = time.Second
)

// read calls OnRead.
func (c *Config) read(read, total int64) {
	if c.OnRead != nil {
		c.OnRead(read, total)
	}
}

// Log is the log, open for writing. Its methods may be called by any goroutine; commits
// take their order from their versions, so one goroutine should make them.
type Log struct {
	c       Config
	found   End           // where Open found the end of the log
	failed  chan struct{} // closed when the log fails
	stats   atomic.Pointer[Stats]
	failure atomic.Pointer[error] // set once; matches ErrFailed
	closed  atomic.Bool           // set under mu

	announcing chan struct{}          // holds one element while newest is replaced
	saver      *time.Timer            // calls saveDurable
	saving     atomic.Bool            // saver is set, or saveDurable runs
	durableAt  atomic.Pointer[newest] // the content that newest should have
	pruning    sync.Mutex             // held while the files of the oldest segment are removed; taken before mu

	mu       sync.Mutex  // guards what follows, and all writes to files but newest
	first    *segment    // that the first commit begins; nil before Settle
	file     vfs.File    // the newest segment; nil before the first commit
	segments []segment   // oldest first; the last is the newest segment
	room     int64       // preallocated in the newest segment
	sealed   bool        // the newest segment is never written again, but cut, if a failed commit lies after its end
	state    state       // after the newest commit
	durable  state       // after the newest commit known durable
	own      encoded     // what Commit encodes into
	syncer   *time.Timer // calls syncLater, where the policy is neither Always nor Off
	syncing  bool        // syncer is set
}

// newestLocked returns the segment that is being written.
func (l *Log) newestLocked() *segment { return &l.segments[len(l.segments)-1] }

// usableLocked returns an error if the log cannot be written any more.
func (l *Log) usableLocked() error {
	if err := l.Err(); err != nil {
		return err
	}
	if l.closed.Load() {
		return ErrClosed
	}
	return nil
}

// Commit appends the records of one commit, whose versions go on where the log ends. When it
// returns nil they are durable, as far as the policy promises. The records are not kept.
//
// After ErrNoSpace nothing of the commit is in the log. The caller may retry the same records, or
// others of the same versions, later; what was committed is safe. After
// ErrFailed it is unknown whether the commit is on disk, and every later call fails in the same way.
func (l *Log) Commit(records []*ledger.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usableLocked(); err != nil {
		return err
	}
	if l.file == nil {
		if err := l.beginFirstLocked(); err != nil {
			return err
		}
	}
	if err := l.own.encode(records, l.state.version+1); err != nil || len(records) == 0 {
		return err
	}
	return l.commitLocked(records, &l.own)
}

// commitLocked appends a commit that e holds.
func (l *Log) commitLocked(records []*ledger.Record, e *encoded) error {
	if err := l.makeRoomLocked(int64(len(e.buf))); err != nil {
		return err
	}
	after := e.stamp(records, l.newestLocked().index, l.state, l.durable.position)
	if err := l.appendLocked(e.buf); err != nil {
		return err
	}
	l.state = after
	l.newestLocked().size += int64(len(e.buf))
	l.publishLocked()
	switch {
	case l.c.Policy == Always:
		return l.syncLocked()
	case l.c.Policy > 0 && !l.syncing:
		l.syncing = true
		l.syncer.Reset(time.Duration(l.c.Policy))
	}
	return nil
}

// appendLocked writes a commit after the newest one. If there is no space it cuts off what was
// written; if even that is impossible, the segment is sealed.
func (l *Log) appendLocked(b []byte) error {
	end := l.newestLocked().size
	err := writeAt(l.file, b, end)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("cannot write record %d: %w", l.state.version+1, err)
	if !errors.Is(err, ErrNoSpace) {
		return l.fail(err)
	}
	if cut := l.file.Truncate(end); cut == nil {
		l.room = end
	} else {
		l.sealed = true
		l.c.Logger.Warn("a commit that found no space cannot be cut off; the log goes on in a new segment",
			"segment", l.newestLocked().index, "offset", end, "error", cut)
	}
	return err
}

// Sync makes everything that was committed durable, whatever the policy.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usableLocked(); err != nil {
		return err
	}
	return l.syncLocked()
}

// syncLocked syncs the newest segment unless there is nothing to sync.
func (l *Log) syncLocked() error {
	if l.durable.position == l.state.position {
		return nil
	}
	return l.syncNowLocked()
}

// syncNowLocked syncs the newest segment and reports how long that took.
func (l *Log) syncNowLocked() error {
	began := time.Now()
	err := l.file.Sync()
	took := time.Since(began)
	if l.c.OnSync != nil {
		l.c.OnSync(took)
	}
	if took > slowSync {
		l.c.Logger.Warn("the disk took long to sync the log", "took", took, "segment", l.newestLocked().index)
	}
	if err != nil {
		return l.fail(fmt.Errorf("cannot sync segment %d at slot %d: %w", l.newestLocked().index, l.state.slot, err))
	}
	l.durable = l.state
	l.publishLocked()
	l.durableAt.Store(&newest{index: l.newestLocked().index, durable: l.durable.position})
	l.saveLater()
	return nil
}

// fail marks the log as failed for good, and returns the first such failure.
func (l *Log) fail(err error) error {
	if err = fmt.Errorf("%w: %w", ErrFailed, err); l.failure.CompareAndSwap(nil, &err) {
		close(l.failed)
	}
	return l.Err()
}

// failUnlessFull returns nil and ErrNoSpace as they are: the log goes on. Any other error fails the log.
func (l *Log) failUnlessFull(err error) error {
	if err == nil || errors.Is(err, ErrNoSpace) {
		return err
	}
	return l.fail(err)
}

// Failed returns a channel that is closed when the log fails for good, as it may between two
// commits. Err then says why.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err returns the failure, which matches ErrFailed, or nil. It never waits for the disk.
func (l *Log) Err() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// syncLater syncs under a policy between Always and Off. The timer syncer calls it.
func (l *Log) syncLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncing = false
	if l.usableLocked() == nil {
		_ = l.syncLocked() // a failure closes failed, and the next Commit returns it
	}
}

// Close syncs the log, frees the space that was preallocated, and names the end in the file
// newest, so that the last commit counts as known durable. After a failure it only closes
// the file, and returns the failure. Closing a log without a commit, or closing again, changes no file.
func (l *Log) Close() error {
	l.pruning.Lock()
	defer l.pruning.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Swap(true) {
		return nil
	}
	l.announcing <- struct{}{} // a replacement under way ends before; a later one sees that the log is closed
	defer func() { <-l.announcing }()
	defer l.syncer.Stop()
	defer l.saver.Stop()
	if l.file == nil {
		return l.Err()
	}
	defer l.file.Close()
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.finishSegmentLocked(); err != nil {
		return err
	}
	return l.failUnlessFull(announce(&l.c, newest{index: l.newestLocked().index, durable: l.durable.position}))
}
