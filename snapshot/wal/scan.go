package wal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

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
	disk   vfs.FS
	survey *survey
	start  int    // index in survey.segments of the first to be read
	at     cursor // records of commits before it are checked but not sent
	out    func(commit []Entry) error
	in     *bufio.Reader // of the segment that is being read

	state   state
	commit  []byte   // the frames of the commit that is being read
	entries []Entry  // of these frames
	whole   state    // before this commit
	durable Position // highest position known durable by what was seen so far
	end     End      // set by the scan of the last segment
}

// newScanner reads the headers of a log, except for known ones. The scanner reads readBytes at once; its buffer is not larger
// than what is to be read. The caller sets out.
func newScanner(disk vfs.FS, dir string, at cursor, known []segment, readBytes int) (*scanner, error) {
	survey, err := surveyLog(disk, dir, known)
	if err != nil {
		return nil, err
	}
	if len(survey.segments) == 0 && survey.damage != nil {
		return nil, survey.damage
	}
	start, err := survey.startAt(at.next())
	in := bufio.NewReaderSize(nil, int(min(int64(readBytes), survey.bytes(start))))
	return &scanner{disk: disk, survey: survey, start: start, at: at, in: in}, err
}

// scan scans the segments, until out returns an error, which scan then returns. If the log ends before the cursor at, the error is
// ErrMissing.
func (s *scanner) scan() error {
	s.durable = s.survey.newest.durable
	for i := s.start; i < len(s.survey.segments); i++ {
		g := &s.survey.segments[i]
		if i == s.start {
			s.state = state{version: g.first - 1, slot: g.slot, chain: g.chain}
		}
		s.state.position = g.position + headerBytes
		if i == s.start && s.at.segment == g.index {
			s.state = s.at.state
		}
		if err := s.segment(i); err != nil {
			return err
		}
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
func (s *scanner) segment(i int) error {
	g := &s.survey.segments[i]
	f, err := s.disk.Open(g.name)
	if err != nil {
		return fmt.Errorf("cannot open a segment: %w", err)
	}
	defer f.Close()
	s.whole, s.commit, s.entries = s.state, s.commit[:0], s.entries[:0]
	last := i == len(s.survey.segments)-1
	limit := g.size
	if !last {
		limit = int64(s.survey.segments[i+1].position - g.position)
	}
	reason, err := s.frames(f, g, limit)
	if err != nil {
		return err
	}
	switch {
	case !last:
		return s.checkBoundary(g, &s.survey.segments[i+1], reason)
	case s.survey.damage != nil:
		return nil // scan returns the damage
	}
	return s.classifyTail(f, g, reason)
}

// checkBoundary checks that a segment ends as the header of the next one says.
func (s *scanner) checkBoundary(g, next *segment, reason error) error {
	switch {
	case reason == nil && len(s.entries) > 0:
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
func (s *scanner) frames(f vfs.File, g *segment, limit int64) (reason, err error) {
	at := g.offset(s.state.position)
	s.in.Reset(io.NewSectionReader(f, at, limit-at))
	for reason == nil && err == nil && g.offset(s.state.position) < limit {
		reason, err = s.frame(g, limit)
	}
	return reason, err
}

// frame reads the next frame and checks it. It returns why the frame is not whole.
func (s *scanner) frame(g *segment, limit int64) (reason, err error) {
	offset := g.offset(s.state.position)
	header, err := s.in.Peek(int(min(frameBytes, limit-offset)))
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("cannot read %s at byte %d: %w", g.name, offset, err)
	}
	f, reason := decodeHeader(header)
	if reason != nil {
		return reason, nil
	}
	if int64(f.size) > limit-offset {
		return fmt.Errorf("%w: %d of %d bytes of a frame", ErrTorn, limit-offset, f.size), nil
	}
	before := len(s.commit)
	s.commit = slices.Grow(s.commit, f.size)[:before+f.size]
	b := s.commit[before:]
	if n, err := io.ReadFull(s.in, b); err == io.ErrUnexpectedEOF {
		clear(b[n:]) // the writer may have ended the segment during the read, and so have cut off the preallocated zeros
	} else if err != nil {
		return nil, fmt.Errorf("cannot read %s at byte %d: %w", g.name, offset+int64(n), err)
	}
	if err := checkFrame(b); err != nil {
		return err, nil
	}
	switch {
	case f.position != s.state.position || f.segment != uint32(g.index):
		return fmt.Errorf("%w: a frame of another place", ErrCorrupt), nil
	case f.version != s.state.version+1:
		return fmt.Errorf("%w: record %d follows record %d", ErrCorrupt, f.version, s.state.version), nil
	case f.durable > f.position:
		return fmt.Errorf("%w: the frame contradicts itself", ErrCorrupt), nil
	case f.link != chainAfter(s.state.chain, b):
		return fmt.Errorf("%w: the frame belongs to another log", ErrCorrupt), nil
	}
	s.durable = max(s.durable, f.durable)
	s.entries = append(s.entries, Entry{
		frame: f, tip: s.state.slot, Segment: g.index, Offset: offset, Position: f.position, Durable: f.durable, SizeBytes: f.size,
	})
	s.state = f.after(s.state.slot)
	if !f.last {
		return nil, nil
	}
	return nil, s.commitRead(g)
}

// commitRead ends the commit that the entries make up. It decodes and sends the commit unless that comes before the cursor at.
func (s *scanner) commitRead(g *segment) error {
	entries, frames := s.entries, s.commit
	s.commit, s.entries, s.whole = s.commit[:0], s.entries[:0], s.state
	if s.state.version < s.at.next() {
		return nil
	}
	for i := range entries {
		e := &entries[i]
		if err := e.decode(frames[e.Offset-entries[0].Offset:]); err != nil {
			// The frame is as it was written, so this was written wrong.
			return &CorruptError{Segment: g.name, Offset: e.Offset, LastVersion: e.frame.version - 1, LastSlot: e.tip, Reason: reasonOf(err)}
		}
	}
	s.entries = nil // they belong to the caller
	return s.out(entries)
}

// decode decodes the record of the frame at the front of b. The record holds nothing of b.
func (e *Entry) decode(b []byte) (err error) {
	e.Record, err = codec.DecodeRecord(payload(b))
	if r := e.Record; err == nil && (r.Version != e.frame.version || r.Slot != e.frame.slot || r.Kind != e.frame.kind || r.Hash != e.frame.hash) {
		err = errors.New("the record is not what its frame says")
	}
	return err
}
