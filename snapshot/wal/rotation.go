package wal

import (
	"errors"
	"fmt"

	"ledgerd/snapshot/vfs"
)

// makeRoomLocked preallocates space for a commit of n bytes in the newest segment, after beginning another if this one is full.
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
		default: // the file newest is being replaced: the segment grows, so that the commit does not wait for the replacement
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
		// Free the part that was preallocated. If that fails, only zeros stay.
		_ = l.file.Truncate(end)
		return err
	}
	l.room = room
	return nil
}

// rotateLocked ends the newest segment and begins the next, which gets room for a commit of n
// bytes. After this begins, no record is added to the old segment, even if it fails, because the header of the next
// segment, which may be on disk already, says where the old one ends. A retry may only cut the old segment to its length
// again. The caller has put an element into announcing: otherwise saveDurable might name the old segment in newest after the next one was named.
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

// beginLocked makes g, whose file is f, the newest segment.
func (l *Log) beginLocked(f vfs.File, g segment, room int64) {
	l.file, l.room, l.sealed = f, room, false
	g.name, g.size = segmentName(l.c.Dir, g.index), headerBytes
	l.segments = append(l.segments, g)
	l.state.position = g.position + headerBytes
	l.durable = l.state
	l.durableAt.Store(&newest{index: g.index, durable: g.position})
}

// finishSegmentLocked frees the space that the newest segment does not need, and syncs it.
func (l *Log) finishSegmentLocked() error {
	if end := l.newestLocked().size; l.room > end {
		err := outOfSpace(l.file.Truncate(end))
		// Zeros after the end do no harm, and the bytes of a failed commit may stay. So it is no failure if
		// the disk lacks space for the cut, odd as that is, or if a sealed segment cannot be cut.
		if err != nil && !l.sealed && !errors.Is(err, ErrNoSpace) {
			return l.fail(fmt.Errorf("cannot cut segment %d to its length: %w", l.newestLocked().index, err))
		}
	}
	return l.syncNowLocked()
}
