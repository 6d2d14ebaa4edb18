package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Entry is a record and where it lies.
type Entry struct {
	Record    *ledger.Record
	Segment   uint64   // index
	Offset    int64    // of its frame in the segment
	Position  Position // of its frame in the log
	Durable   Position // highest position known durable when it was written
	SizeBytes int      // of its frame, padding included

	frame frame
	link  chain       // of the log after it
	tip   ledger.Slot // of the chain before it
}

// queuedChunks bounds how far the disk may be ahead of the decoder and the decoder of
// the caller: far enough that neither waits for the other's hiccups.
const queuedChunks = 2

// Replay reads the log in dir, changing nothing, from the commit that holds the record from, or
// from the oldest if from is 0. It calls visit for every whole commit, in order, and returns
// where the log ends; a torn tail is told there and is no error. An empty or missing
// directory is an empty log. Segments before the one that holds from are looked at only as far
// as their headers.
//
// Damage is a *CorruptError, a newer format a *FormatError. A record from that the log
// does not reach, or does not reach back to, is ErrMissing. What visit returns, Replay returns.
// In every case visit may have been called for the commits before. Progress, which may be nil, is
// told between calls of visit how many bytes were read of how many. Entries and their records are
// the caller's.
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
	s := &scanner{disk: disk, survey: survey, from: from, mark: mark, out: checked, free: make(chan []byte, queuedChunks+2)}
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
	tell := func(read int64) {
		if progress != nil {
			progress(read, total)
		}
	}
	err = deliver(decoded, visit, tell)
	cancel()
	wg.Wait()

	// What stopped the others comes first.
	for _, err := range []error{err, ctx.Err(), decodeErr, scanErr} {
		if err != nil {
			return End{}, err
		}
	}
	if newest := s.end.Version(); from > newest+1 {
		return End{}, fmt.Errorf("%w: record %d was asked for, the newest is %d", ErrMissing, from, newest)
	}
	tell(total) // the room taken ahead was looked at too
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
		case s.free <- c.buf:
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

// End is where a log ends: all that Open needs to go on.
type End struct {
	state
	durable  Position
	segments []segment
	offset   int64        // in the last segment, behind the last whole commit
	torn     int64        // bytes behind it that a crash left
	reason   string       // why they are not whole
	opened   *atomic.Bool // set by Open: what this tells is over then; nil for an empty log
}

// Version returns that of the newest whole record or, for an empty log, of the one before the first that
// it may hold: 0 unless it was opened with Begin.
func (e End) Version() ledger.Version { return e.version }

// Slot returns the chain's tip after the newest record.
func (e End) Slot() ledger.Slot { return e.slot }

// Position returns where the newest whole commit ends.
func (e End) Position() Position { return e.position }

// Durable returns the highest position that was known durable before the crash or stop.
func (e End) Durable() Position { return e.durable }

// Torn tells whether a crash left something behind the newest whole commit, which Open cuts.
func (e End) Torn() bool { return e.torn > 0 }

// String tells how the log ends.
func (e End) String() string {
	if len(e.segments) == 0 {
		return "the log is empty"
	}
	g := &e.segments[len(e.segments)-1]
	s := fmt.Sprintf("the log ends behind record %d, at slot %d, in %s at byte %d", e.version, e.slot, g.name, e.offset)
	if e.Torn() {
		s += fmt.Sprintf("; a crash left %d bytes behind it (%s)", e.torn, e.reason)
	}
	return s
}
