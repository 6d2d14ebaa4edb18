package wal

import (
	"errors"
	"fmt"

	"ledgerd/snapshot/vfs"
)

// makeRoomLocked sees to it that the newest segment has room for a commit of n bytes, taken ahead.
func (l *Log) makeRoomLocked(n int64) error {
	end := l.newestLocked().size
	if l.sealed {
		l.announcing <- struct{}{}
		return l.rotateLocked(n)
	}
	if end+n > l.c.SegmentBytes && end > headerBytes {
		select {
		case l.announcing <- struct{}{}:
			return l.rotateLocked(n)
		default: // newest is being replaced: the segment grows, so that the commit does not wait for that
		}
	}
	if end+n <= l.room {
		return nil
	}
	room := max(end+n, l.c.SegmentBytes)
	if err := outOfSpace(l.file.Preallocate(room)); err != nil {
		err = fmt.Errorf("cannot take room for record %d: %w", l.state.version+1, err)
		if !errors.Is(err, ErrNoSpace) {
			return l.fail(err)
		}
		// Give back the part that was taken. If that fails, it is only zeros that stay.
		_ = l.file.Truncate(end)
		return err
	}
	l.room = room
	return nil
}

// rotateLocked ends the newest segment and begins the next, which gets room for a commit of n
// bytes. Once begun, no record is added to the old one, whatever comes of it, though it may be cut
// to its length again: the next one, which may be on disk already, says where the old one ends. The caller put an element
// into announcing: else saveDurable might name the old segment after the next.
func (l *Log) rotateLocked(n int64) error {
	defer func() { <-l.announcing }()
	if err := l.finishSegmentLocked(); err != nil {
		return err
	}
	l.sealed = true
	h := l.state.header(l.newestLocked().index + 1)
	room := max(l.c.SegmentBytes, headerBytes+n)
	f, err := createSegment(&l.c, h, room)
	if err != nil {
		return l.failUnlessFull(err)
	}
	_ = l.file.Close() // everything in it is synced
	l.beginLocked(f, segment{header: h}, room)
	l.publishLocked()
	return nil
}

// header returns the header of a segment that begins after the state, all of which is durable.
func (s *state) header(index uint64) header {
	return header{index: index, first: s.version + 1, position: s.position, slot: s.slot, chain: s.chain}
}

// beginLocked makes g, which f is, the newest segment.
func (l *Log) beginLocked(f vfs.File, g segment, room int64) {
	l.file, l.room, l.sealed = f, room, false
	g.name, g.size = segmentName(l.c.Dir, g.index), headerBytes
	l.segments = append(l.segments, g)
	l.state.position = g.position + headerBytes
	l.durable = l.state
	l.durableAt.Store(&newest{index: g.index, durable: g.position})
}

// finishSegmentLocked gives back the room that the newest segment does not need, and syncs it.
func (l *Log) finishSegmentLocked() error {
	if end := l.newestLocked().size; l.room > end {
		err := outOfSpace(l.file.Truncate(end))
		// Zeros after the end do no harm, and a failed commit stays where it is. So neither want of
		// space, odd as it is here, nor another refusal to cut a sealed segment is a failure.
		if err != nil && !l.sealed && !errors.Is(err, ErrNoSpace) {
			return l.fail(fmt.Errorf("cannot cut segment %d to its length: %w", l.newestLocked().index, err))
		}
	}
	return l.syncNowLocked()
}
