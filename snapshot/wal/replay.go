package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Entry is a record and its place in the log.
type Entry struct {
	Record    *ledger.Record
	Segment   uint64   // index
	Offset    int64    // of its frame in the segment
	Position  Position // of its frame in the log
	Durable   Position // highest position known durable when it was written
	SizeBytes int      // of its frame, padding included

	frame frame
	tip   ledger.Slot // of the chain before it
}

// queuedChunks bounds how far reading may be ahead of the decoder and the decoder of
// the caller, so that a short stall of one does not stop the others.
const queuedChunks = 2

// Replay reads the log in dir, changing nothing, from the commit that holds the record from, or
// from the oldest if from is 0. It calls visit for every whole commit, in order, and returns
// where the log ends; a torn tail is noted there and is no error. An empty or missing
// directory is an empty log. Of the segments before the one that holds from, Replay reads only
// the headers.
//
// Damage is a *CorruptError, a newer format a *vfs.FormatError. A record from that the log
// does not reach, or does not reach back to, is ErrMissing. What visit returns, Replay returns.
// In every case visit may have been called for the commits before. Replay calls progress, which may be nil,
// between calls of visit with the bytes read so far and in total. Entries and their records belong to
// the caller.
func Replay(ctx context.Context, disk vfs.FS, dir string, from ledger.Version,
	visit func([]Entry) error, progress func(read, total int64)) (End, error) {
	return replay(ctx, disk, dir, MarkAt(from), visit, progress)
}

// replay is Replay from a mark on.
func replay(ctx context.Context, disk vfs.FS, dir string, mark Mark,
	visit func([]Entry) error, progress func(read, total int64)) (End, error) {
	from := mark.state.version + 1
	survey, err := surveyLog(disk, dir)
	if err != nil {
		return End{}, err
	}
	if len(survey.segments) == 0 && survey.damage != nil {
		return End{}, survey.damage
	}
	start, err := survey.startAt(from)
	if err != nil {
		return End{}, err
	}
	checked, decoded := make(chan *chunk, queuedChunks), make(chan *chunk, queuedChunks)
	s := &scanner{disk: disk, survey: survey, from: from, mark: mark, out: checked, spare: make(chan []byte, queuedChunks)}
	total := int64(0)
	for i := start; i < len(survey.segments); i++ {
		total += survey.segments[i].size
	}

	inner, cancel := context.WithCancel(ctx)
	var scanErr, decodeErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(checked)
		scanErr = s.run(inner, start)
	})
	wg.Go(func() {
		defer close(decoded)
		if decodeErr = s.decode(inner, checked, decoded); decodeErr != nil {
			cancel()
		}
	})
	if progress == nil {
		progress = func(int64, int64) {}
	}
	err = deliver(decoded, visit, func(read int64) { progress(read, total) })
	cancel()
	wg.Wait()

	// The error that stopped the others comes first.
	if err := cmp.Or(err, ctx.Err(), decodeErr, scanErr); err != nil {
		return End{}, err
	}
	if newest := s.end.Version(); from > newest+1 {
		return End{}, fmt.Errorf("%w: record %d was asked for, the newest is %d", ErrMissing, from, newest)
	}
	progress(total, total) // preallocated space included
	return s.end, nil
}

// decode decodes the records of each chunk.
func (s *scanner) decode(ctx context.Context, in <-chan *chunk, out chan<- *chunk) error {
	for c := range in {
		for i := range c.entries {
			e := &c.entries[i]
			r, err := codec.DecodeRecord(c.payload(e))
			if err == nil && (r.Version != e.frame.version || r.Slot != e.frame.slot ||
				r.Kind != e.frame.kind || r.Hash != e.frame.hash) {
				err = errors.New("the record is not what its frame says")
			}
			if err != nil {
				// The frame is as it was written, so this was written wrong.
				return &CorruptError{
					Segment: s.survey.segments[e.Segment-s.survey.segments[0].index].name, Offset: e.Offset,
					LastVersion: e.frame.version - 1, LastSlot: e.tip, Reason: reasonOf(err),
				}
			}
			e.Record = r
		}
		select {
		case s.spare <- c.buf: // the records hold nothing of it
		default:
		}
		c.buf = nil
		select {
		case out <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// deliver calls visit for each commit until there are no more or it fails.
func deliver(in <-chan *chunk, visit func([]Entry) error, progress func(read int64)) error {
	for c := range in {
		at := 0
		for _, end := range c.ends {
			if err := visit(c.entries[at:end:end]); err != nil {
				return err
			}
			at = end
		}
		progress(c.read)
	}
	return nil
}

// End is where a log ends: everything that Open needs to go on.
type End struct {
	state
	durable  Position
	segments []segment
	offset   int64        // in the last segment, after the last whole commit
	torn     int64        // bytes after it that a crash left
	reason   string       // why they are not whole
	opened   *atomic.Bool // set by Open: the end is out of date then; nil for an empty log
}

// Version returns that of the newest whole record or, for an empty log, of the one before the first that
// it may hold: 0 unless it was opened with Begin.
func (e End) Version() ledger.Version { return e.version }

// Slot returns the chain's tip after the newest record.
func (e End) Slot() ledger.Slot { return e.slot }

// Torn says whether a crash left something after the newest whole commit, which Open cuts.
func (e End) Torn() bool { return e.torn > 0 }

// String describes how the log ends.
func (e End) String() string {
	if len(e.segments) == 0 {
		return "the log is empty"
	}
	g := &e.segments[len(e.segments)-1]
	s := fmt.Sprintf("the log ends after record %d, at slot %d, in %s at byte %d", e.version, e.slot, g.name, e.offset)
	if e.Torn() {
		s += fmt.Sprintf("; a crash left %d bytes after it (%s)", e.torn, e.reason)
	}
	return s
}
