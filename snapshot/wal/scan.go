package wal

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// state is what links one frame to the next.
type state struct {
	version  ledger.Version // of the newest record
	slot     ledger.Slot    // the chain's tip after it
	position Position       // of its end
	chain    chain
}

// tipAfter returns the chain's tip after a record at a slot. A status is about a block below it, and
// base state is of any slot.
func tipAfter(tip ledger.Slot, kind ledger.RecordKind, slot ledger.Slot) ledger.Slot {
	if kind == ledger.StatusRecord || kind == ledger.BaseRecord {
		return tip
	}
	return slot
}

// after returns the state after a frame; tip is the chain's tip before it.
func (f *frame) after(tip ledger.Slot) state {
	return state{
		version: f.version, slot: tipAfter(tip, f.kind, f.slot),
		position: f.position + Position(f.size), chain: f.link,
	}
}

// scanner reads segments from front to back, checks every frame, and sends whole commits on.
type scanner struct {
	disk       vfs.FS
	survey     *survey
	start      int    // of the segments of the survey, the first to be read
	at         cursor // records of commits before it are checked but not sent
	chunkBytes int64  // how much is read at once
	out        func(*chunk) error
	spare      []byte // the buffer of a chunk that was decoded

	state   state
	pending int      // records of the commit that is being read
	whole   state    // before them
	durable Position // highest position known durable by what was seen so far
	read    int64
	end     End // set by the scan of the last segment
}

// newScanner reads the headers of a log, but for those known from before. The caller sets chunkBytes and out.
func newScanner(disk vfs.FS, dir string, at cursor, known []segment) (*scanner, error) {
	survey, err := surveyLog(disk, dir, known)
	if err != nil {
		return nil, err
	}
	if len(survey.segments) == 0 && survey.damage != nil {
		return nil, survey.damage
	}
	start, err := survey.startAt(at.next())
	return &scanner{disk: disk, survey: survey, start: start, at: at}, err
}

// run scans the segments. A record to begin with that the log does not reach is ErrMissing.
func (s *scanner) run(ctx context.Context) error {
	s.durable = s.survey.durable
	for i := s.start; i < len(s.survey.segments); i++ {
		g := &s.survey.segments[i]
		if i == s.start {
			s.state = state{version: g.first - 1, slot: g.slot, chain: g.chain}
		}
		s.state.position = g.position + headerBytes
		if i == s.start && s.at.segment == g.index {
			s.state = s.at.state
		}
		if err := s.segment(ctx, i); err != nil {
			return err
		}
		s.read += g.size
	}
	if s.survey.damage != nil {
		return s.damaged(s.survey.damage)
	}
	if from := s.at.next(); from > s.end.version+1 {
		return fmt.Errorf("%w: record %d was asked for, the newest is %d", ErrMissing, from, s.end.version)
	}
	return nil
}

// damaged adds the last record of a whole commit to damage of a header.
func (s *scanner) damaged(err error) error {
	var c *CorruptError
	if errors.As(err, &c) && c.LastVersion == 0 {
		c.LastVersion, c.LastSlot = s.whole.version, s.whole.slot
	}
	return err
}

// segment scans one segment. Its frames end where the next header says, or in the last one
// where a crash may have ended them.
func (s *scanner) segment(ctx context.Context, i int) error {
	g := &s.survey.segments[i]
	f, err := s.disk.Open(g.name)
	if err != nil {
		return fmt.Errorf("cannot open a segment: %w", err)
	}
	defer f.Close()
	s.whole, s.pending = s.state, 0
	last := i == len(s.survey.segments)-1
	limit := g.size
	if !last {
		limit = int64(s.survey.segments[i+1].position - g.position)
	}
	reason, err := s.frames(ctx, f, g, limit)
	if err != nil {
		return err
	}
	switch {
	case !last:
		return s.checkBoundary(g, &s.survey.segments[i+1], reason)
	case s.survey.damage != nil:
		return nil // run returns the damage
	}
	return s.classifyTail(f, g, reason)
}

// checkBoundary checks that a segment ends as the header of the next one says.
func (s *scanner) checkBoundary(g, next *segment, reason error) error {
	switch {
	case reason == nil && s.pending > 0:
		reason = errors.New("the last commit is not complete")
	case reason == nil && (s.state.chain != next.chain || s.state.version+1 != next.first || s.state.slot != next.slot):
		return s.corrupt(next, 0, fmt.Sprintf("it does not follow segment %d", g.index))
	}
	if reason != nil {
		return s.corrupt(g, g.offset(s.state.position), reasonOf(reason))
	}
	return nil
}

func (s *scanner) corrupt(g *segment, offset int64, reason string) error {
	return &CorruptError{Segment: g.name, Offset: offset, Reason: reason,
		LastVersion: s.whole.version, LastSlot: s.whole.slot}
}

// frames checks the frames up to limit and sends the commits. The reason says why the frame at
// state.position is not whole; it is nil if the frames reach the limit.
func (s *scanner) frames(ctx context.Context, f vfs.File, g *segment, limit int64) (reason, err error) {
	c := &chunk{buf: s.buffer(), base: g.offset(s.state.position)}
	want := s.chunkBytes // how much c.buf should hold
	for {
		if c.buf, err = fill(f, g, c.buf, c.base, min(want, limit-c.base)); err != nil {
			return nil, err
		}
		need, reason := s.parse(c, g)
		at := g.offset(s.state.position)
		if at >= limit && reason == nil {
			return nil, s.send(ctx, c)
		}
		if reason != nil && (!errors.Is(reason, ErrTorn) || c.base+int64(len(c.buf)) >= limit) {
			return reason, s.send(ctx, c)
		}
		// The buffer ends inside a frame, or a commit. The next chunk begins with that commit.
		from := g.offset(s.whole.position)
		want = max(s.chunkBytes, 2*(at+int64(need)-from))
		rest := c.buf[from-c.base:]
		next := &chunk{buf: append(s.buffer(), rest...), base: from}
		n := len(c.entries) - s.pending
		next.entries = append(next.entries, c.entries[n:]...)
		c.entries = c.entries[:n]
		if err := s.send(ctx, c); err != nil {
			return nil, err
		}
		c = next
	}
}

// buffer returns an empty buffer, nil if none is spare.
func (s *scanner) buffer() []byte {
	b := s.spare
	s.spare = nil
	return b[:0]
}

// parse checks the frames that the chunk holds after state.position. It returns why it
// stopped, nil if at the end of the buffer, and how many bytes the next frame needs at least.
func (s *scanner) parse(c *chunk, g *segment) (need int, reason error) {
	for {
		offset := g.offset(s.state.position)
		b := c.buf[offset-c.base:]
		if len(b) == 0 {
			return frameBytes, nil
		}
		f, _, err := decodeFrame(b)
		if err != nil {
			return max(f.size, frameBytes), err
		}
		switch {
		case f.position != s.state.position || f.segment != uint32(g.index):
			return 0, fmt.Errorf("%w: a frame of another place", ErrCorrupt)
		case f.version != s.state.version+1:
			return 0, fmt.Errorf("%w: record %d follows record %d", ErrCorrupt, f.version, s.state.version)
		case f.durable > f.position:
			return 0, fmt.Errorf("%w: the frame contradicts itself", ErrCorrupt)
		case f.link != chainAfter(s.state.chain, b):
			return 0, fmt.Errorf("%w: the frame belongs to another log", ErrCorrupt)
		}
		s.durable = max(s.durable, f.durable)
		c.entries = append(c.entries, Entry{
			frame: f, tip: s.state.slot, Segment: g.index, Offset: offset, Position: f.position, Durable: f.durable, SizeBytes: f.size,
		})
		s.state = f.after(s.state.slot)
		s.pending++
		if f.last {
			s.commitRead(c)
		}
	}
}

// commitRead ends the commit that the last entries of the chunk make up.
func (s *scanner) commitRead(c *chunk) {
	if s.state.version < s.at.next() {
		c.entries = c.entries[:len(c.entries)-s.pending]
	} else {
		c.ends = append(c.ends, len(c.entries))
	}
	s.pending, s.whole = 0, s.state
}

// send decodes a chunk and hands it on, without what is not a whole commit.
func (s *scanner) send(ctx context.Context, c *chunk) error {
	if len(c.ends) == 0 {
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.read = s.read + c.base + int64(len(c.buf))
	c.entries = c.entries[:c.ends[len(c.ends)-1]]
	if err := s.decode(c); err != nil {
		return err
	}
	s.spare, c.buf = c.buf, nil // the records hold nothing of it
	return s.out(c)
}

// decode decodes the records of a chunk.
func (s *scanner) decode(c *chunk) error {
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
	return nil
}
