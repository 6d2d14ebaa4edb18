package wal

import (
	"errors"
	"fmt"

	"ledgerd/snapshot/vfs"
)

// makeRoomLocked sees to it that the newest segment has room for a commit of n bytes, taken ahead.
func (l *Log) makeRoomLocked(n int64) error {
	end := l.newestLocked().bytes
	if l.sealed || (end+n > l.c.segmentBytes() && end > headerBytes) {
		return l.rotateLocked(n)
	}
	if end+n <= l.room {
		return nil
	}
	room := max(end+n, l.c.segmentBytes())
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

// segmentBytes returns how large a segment gets.
func (c *Config) segmentBytes() int64 {
	if c.SegmentBytes > 0 {
		return c.SegmentBytes
	}
	return defaultSegmentBytes
}

// rotateLocked ends the newest segment and begins the next, which gets room for a commit of n
// bytes. Once begun, nothing is written to the old one, whatever comes of it: the next one,
// which may be on disk already, says where the old one ends.
func (l *Log) rotateLocked(n int64) error {
	l.sealed = true
	if err := l.finishSegmentLocked(false); err != nil {
		return err
	}
	l.announcing <- struct{}{} // else mark might name this segment after the next
	defer func() { <-l.announcing }()
	h := l.headerLocked()
	room := max(l.c.segmentBytes(), headerBytes+n)
	f, err := createSegment(&l.c, h, room)
	if err != nil {
		if !errors.Is(err, ErrNoSpace) {
			return l.fail(err)
		}
		return err
	}
	_ = l.file.Close() // everything in it is synced
	l.beginLocked(f, h, room)
	l.publishLocked()
	return nil
}

// headerLocked returns the header of the segment that follows the newest commit, all of
// which is durable.
func (l *Log) headerLocked() header {
	return header{
		index: l.newestLocked().index + 1, first: l.state.version + 1, position: l.state.position,
		durable: l.state.position, slot: l.state.slot, chain: l.state.chain,
	}
}

// beginLocked makes f, whose header is h, the newest segment.
func (l *Log) beginLocked(f vfs.File, h header, room int64) {
	l.file, l.room = f, room
	l.sealed, l.tail = false, false
	l.segments = append(l.segments, held{index: h.index, first: h.first, bytes: headerBytes})
	l.bytes += headerBytes
	l.state.position = h.position + headerBytes
	l.durable = l.state
	l.durableAt.Store(&newest{index: h.index, durable: h.position})
}

// finishSegmentLocked gives back the room that the newest segment does not need, and syncs what
// is not durable, or with always set in any case.
func (l *Log) finishSegmentLocked(always bool) error {
	if end := l.newestLocked().bytes; l.tail || l.room > end {
		err := outOfSpace(l.file.Truncate(end))
		// Zeros behind the end do no harm, and a tail stays where it is. So neither want of
		// space, odd as it is here, nor another refusal to cut the tail is a failure.
		if err != nil && !l.tail && !errors.Is(err, ErrNoSpace) {
			return l.fail(fmt.Errorf("cannot cut segment %d to its length: %w", l.newestLocked().index, err))
		}
		if err == nil {
			l.room, l.tail = end, false
		}
	}
	if always {
		if err := l.syncFileLocked(l.file); err != nil {
			return l.fail(fmt.Errorf("cannot sync segment %d: %w", l.newestLocked().index, err))
		}
		l.durable = l.state
		l.publishLocked()
	}
	return l.syncLocked()
}
