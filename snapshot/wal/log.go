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
	// SegmentBytes is how large a segment gets; 0 means 64 MiB. The room is taken ahead. A
	// commit that is larger gets a segment of its size.
	SegmentBytes int64
	OnSync       func(time.Duration) // told how long each sync of a segment took; may be nil
	Logger       *slog.Logger        // nil means slog.Default
}

const (
	defaultSegmentBytes = 64 << 20
	// slowSync is how long a sync may take before it is worth a warning: a disk that
	// stalls is felt by everybody who waits for a block.
	slowSync = time.Second
	// keptBufferBytes bounds the buffer that is kept for the next commit. Catching up
	// commits a few MiB at a time.
	keptBufferBytes = 32 << 20
	// markEvery bounds how long newest may lag behind what is durable.
	markEvery = time.Second
)

// held is a segment that the log holds.
type held struct {
	index uint64
	first ledger.Version
	bytes int64 // written
	aside int64 // bytes of the tail that was cut off it and kept, 0 if none was
}

// Log is the log, open for writing. Its methods may be called by any goroutine; commits
// take their order from their versions, so one goroutine should make them.
type Log struct {
	c       Config
	logger  *slog.Logger
	stop    chan struct{} // closed by Close: ends the syncing under Interval
	stopped sync.WaitGroup
	failed  chan struct{} // closed when the log fails
	stats   counters
	failure atomic.Pointer[error] // set once; matches ErrFailed

	announcing chan struct{}          // holds one while newest is replaced
	marker     *time.Timer            // calls mark
	marking    atomic.Bool            // it is set
	durableAt  atomic.Pointer[newest] // what newest should tell

	mu       sync.Mutex   // guards what follows, and everything that is done to files
	first    *header      // of the segment that the first commit begins; nil before Settle
	opened   *atomic.Bool // of the End that was settled
	file     vfs.File     // the newest segment; nil before the first commit
	segments []held       // oldest first; the last is the newest segment
	bytes    int64        // written or kept aside, in all of them
	room     int64        // taken ahead in it
	sealed   bool         // it is never written again
	tail     bool         // a commit that failed lies behind its end and could not be cut off
	state    state        // after the newest commit
	durable  state        // after the newest commit known durable
	own      encoded      // what Commit encodes into
	closed   bool
}

// newestLocked returns the segment that is being written.
func (l *Log) newestLocked() *held { return &l.segments[len(l.segments)-1] }

// usableLocked returns why the log cannot be written any more.
func (l *Log) usableLocked() error {
	if err := l.Err(); err != nil {
		return err
	}
	if l.closed {
		return ErrClosed
	}
	return nil
}

// Commit appends the records of one commit, whose versions go on where the log ends. When it
// returns nil they are durable, as far as the policy promises. The records are not kept.
//
// After ErrNoSpace nothing of the commit is in the log, and the same records, or
// others of the same versions, may be tried again later; what was committed is safe. After
// ErrFailed nothing is known of the commit, and every later call fails in the same way.
func (l *Log) Commit(records []*ledger.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usableLocked(); err != nil {
		return err
	}
	if l.file == nil {
		if err := l.goOnLocked(); err != nil {
			return err
		}
	}
	if err := l.own.encode(records); err != nil {
		return err
	}
	return l.commitLocked(&l.own)
}

// commitLocked appends an encoded commit. After ErrNoSpace the same e may be tried again.
func (l *Log) commitLocked(e *encoded) error {
	if len(e.frames) == 0 {
		return nil
	}
	if v, want := e.frames[0].version, l.state.version+1; v != want {
		return fmt.Errorf("cannot commit record %d to the log: record %d is next", v, want)
	}
	if err := l.makeRoomLocked(int64(len(e.buf))); err != nil {
		return err
	}
	after := e.stamp(l.newestLocked().index, l.state, l.durable.position)
	if err := l.appendLocked(e.buf); err != nil {
		return err
	}
	l.state = after
	l.newestLocked().bytes += int64(len(e.buf))
	l.bytes += int64(len(e.buf))
	l.publishLocked()
	if l.c.Policy.Mode == Always {
		return l.syncLocked()
	}
	return nil
}

// appendLocked writes a commit behind the newest one. If there is no space it takes back what was
// written; if even that is impossible, nothing is written to the segment any more.
func (l *Log) appendLocked(b []byte) error {
	end := l.newestLocked().bytes
	err := writeWhole(l.file, b, end)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("cannot write record %d: %w", l.state.version+1, err)
	if !errors.Is(err, ErrNoSpace) {
		return l.fail(err)
	}
	l.room = end
	if cut := l.file.Truncate(end); cut != nil {
		l.sealed, l.tail = true, true
		l.logger.Warn("a commit that found no space cannot be cut off; the log goes on in a new segment",
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
	if err := l.syncFileLocked(l.file); err != nil {
		return l.fail(fmt.Errorf("cannot sync segment %d at slot %d: %w", l.newestLocked().index, l.state.slot, err))
	}
	l.durable = l.state
	l.publishLocked()
	l.markSoonLocked()
	return nil
}

// syncFileLocked syncs a file and tells how long it took.
func (l *Log) syncFileLocked(f vfs.File) error {
	began := time.Now()
	err := f.Sync()
	took := time.Since(began)
	if l.c.OnSync != nil {
		l.c.OnSync(took)
	}
	if took > slowSync {
		l.logger.Warn("the disk took long to sync the log", "took", took, "segment", l.newestLocked().index)
	}
	return err
}

// fail remembers that the log failed for good, and returns an error that says so.
func (l *Log) fail(err error) error {
	if err = fmt.Errorf("%w: %w", ErrFailed, err); l.failure.CompareAndSwap(nil, &err) {
		close(l.failed)
	}
	return l.Err()
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

// syncEach syncs under Interval until Close.
func (l *Log) syncEach(d time.Duration) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			// A failure closes failed, and the next Commit returns it.
			_ = l.Sync()
		case <-l.failed:
			return
		case <-l.stop:
			return
		}
	}
}

// Close of a log without a commit does nothing. Else it syncs the log, gives back the room that was taken ahead, and names the end in the file
// newest, so that the last commit counts as known durable. After a failure it only lets
// go of the file, and returns the failure. Closing again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.stop)
	l.marker.Stop()
	l.mu.Unlock()
	l.stopped.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.Err()
	}
	defer l.file.Close()
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.finishSegmentLocked(true); err != nil {
		return err
	}
	l.announcing <- struct{}{}
	defer func() { <-l.announcing }()
	if err := announce(&l.c, newest{index: l.newestLocked().index, durable: l.durable.position}); err != nil {
		if !errors.Is(err, ErrNoSpace) {
			return l.fail(err)
		}
		return err
	}
	return nil
}
