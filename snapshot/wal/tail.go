package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ledgerd/snapshot/vfs"
)

// classifyTail decides how the last segment ends: at its end or in zeros, torn, or damaged.
func (s *scanner) classifyTail(f vfs.File, g *segment, reason error) error {
	at := g.offset(s.state.position)        // where the first frame that is not whole begins
	written, err := lastByte(f, at, g.size) // from there on nothing but zeros
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", g.name, err)
	}
	torn := len(s.entries) > 0 || written > at
	if torn {
		after, err := durableAfter(f, g, at)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", g.name, err)
		}
		s.durable = max(s.durable, after)
	}
	switch {
	case reason == nil:
		reason = errors.New("records are missing: the log ends here")
	case written <= at:
		reason = errors.New("nothing but zeros follow")
	}
	if s.durable > s.whole.position {
		return s.corrupt(g, at, fmt.Sprintf("%s, but the log was durable up to byte %d of it", reasonOf(reason), g.offset(s.durable)))
	}
	if g.index > s.survey.newest.index && s.state.position > g.position+headerBytes {
		return s.corrupt(g, headerBytes, fmt.Sprintf("a record, but the file %s does not know the segment", newestName))
	}
	s.end = End{state: s.whole, durable: s.durable, segments: s.survey.segments, offset: g.offset(s.whole.position)}
	if torn {
		s.end.torn, s.end.reason = max(written, at)-s.end.offset, reasonOf(reason)
		if len(s.entries) > 0 {
			s.end.reason = fmt.Sprintf("%d records of a commit that is not complete, then: %s", len(s.entries), s.end.reason)
		}
	}
	return nil
}

// durableAfter searches a segment for whole frames after the frame at off, which is not whole,
// and returns the highest position known durable that these frames name.
func durableAfter(f vfs.File, g *segment, off int64) (durable Position, err error) {
	b, err := io.ReadAll(io.NewSectionReader(f, off, g.size-off))
	if err != nil {
		return 0, err
	}
	for i := 8; i+frameBytes <= len(b); i += 8 {
		if binary.LittleEndian.Uint16(b[i+4:]) != frameMarker {
			continue
		}
		h, err := decodeHeader(b[i:])
		if err == nil && h.position == g.position+Position(off)+Position(i) && h.segment == uint32(g.index) && h.durable <= h.position &&
			h.size <= len(b)-i && checkFrame(b[i:i+h.size]) == nil {
			durable = max(durable, h.durable)
		}
	}
	return durable, nil
}

// lastByte returns the offset after the last byte from off on that is not zero, or off.
func lastByte(f io.ReaderAt, off, size int64) (int64, error) {
	last, b := off, make([]byte, 64<<10)
	for at := off; at < size; at += int64(len(b)) {
		n, err := f.ReadAt(b[:min(int64(len(b)), size-at)], at)
		if err != nil && err != io.EOF {
			return 0, fmt.Errorf("cannot read at byte %d: %w", at, err)
		}
		if written := len(bytes.TrimRight(b[:n], "\x00")); written > 0 {
			last = at + int64(written)
		}
	}
	return last, nil
}
