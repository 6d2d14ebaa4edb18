package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"ledgerd/snapshot/vfs"
)

// New returns a log that is neither read nor written yet. Its directory is replayed first; Settle is next.
func New(c Config) *Log {
	l := &Log{c: c, logger: c.Logger, stop: make(chan struct{}), failed: make(chan struct{}), announcing: make(chan struct{}, 1)}
	if l.logger == nil {
		l.logger = slog.Default()
	}
	l.marker = time.AfterFunc(markEvery, l.mark)
	l.marker.Stop()
	return l
}

// Settle makes durable what Replay found, and cuts what a crash left after the end, keeping the
// bytes aside in a file named like the segment with .broken added. Nothing else may have changed
// the directory in between. The log goes on there at the first commit; until then it takes no space
// but for what is kept aside.
//
// What Replay returned may be gone after a power cut until Settle has returned: it is not to
// be shown to anybody before.
//
// It may be interrupted by a crash at any moment, any number of times. After an error that
// matches ErrNoSpace it may be called again with the same end.
func (l *Log) Settle(end End) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.opened != nil && end.opened.Load() {
		return fmt.Errorf("the log in %s was opened already; it has to be replayed again", l.c.Dir)
	}
	h, kept := end.next()
	if err := l.prepare(end, h); err != nil {
		return err
	}
	if n := len(end.segments); n > 0 {
		if err := l.cut(&end.segments[n-1], end); err != nil {
			return err
		}
	}
	l.first, l.opened, l.segments, l.state, l.durable = &h, end.opened, kept, end.state, end.state
	for i := range kept {
		l.bytes += kept[i].bytes + kept[i].aside
	}
	l.publishLocked()
	return nil
}

// Open settles a new log and begins a segment where Replay found its end. The zero End, or
// one of Begin, begins a log in an empty directory. What is said of Settle holds for it too, but that it takes the space
// of a segment.
func Open(c Config, end End) (*Log, error) {
	l := New(c)
	if err := l.Settle(end); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.goOnLocked(); err != nil {
		return nil, err
	}
	return l, nil
}

// goOnLocked begins the first segment of a log that was settled.
func (l *Log) goOnLocked() error {
	if l.first == nil {
		return fmt.Errorf("the log in %s has not been settled", l.c.Dir)
	}
	room := l.c.segmentBytes()
	f, err := createSegment(&l.c, *l.first, room)
	if err != nil {
		if !errors.Is(err, ErrNoSpace) {
			return l.fail(err)
		}
		return err
	}
	l.beginLocked(f, *l.first, room)
	l.publishLocked()
	if l.opened != nil {
		l.opened.Store(true)
	}
	if l.c.Policy.Mode == Interval {
		l.stopped.Go(func() { l.syncEach(l.c.Policy.Interval) })
	}
	return nil
}

// next returns the header of the segment that the log goes on with, and the segments before it.
func (e *End) next() (header, []held) {
	n := len(e.segments)
	if n == 0 {
		return header{index: 1, first: e.version + 1, slot: e.slot}, nil
	}
	kept := make([]held, n, n+1)
	for i := range kept {
		g := &e.segments[i]
		kept[i] = held{index: g.index, first: g.first, bytes: g.size, aside: g.aside}
	}
	kept[n-1].bytes = e.offset
	if e.Torn() {
		kept[n-1].aside = e.torn // in place of what an earlier crash left there
	}
	h := e.segments[n-1].header
	if e.offset == headerBytes {
		// It holds no record, and is replaced: empty segments do not pile up.
		h.durable = h.position
		return h, kept[:n-1]
	}
	return header{
		index: h.index + 1, first: e.version + 1, position: e.position,
		durable: e.position, slot: e.slot, chain: e.chain,
	}, kept
}

// prepare makes the directory, holds it against the end, and removes what was made aside and
// never renamed. h is the header of the segment that will be made.
func (l *Log) prepare(end End, h header) error {
	disk := l.c.FS
	if err := disk.MkdirAll(l.c.Dir); err != nil {
		return fmt.Errorf("cannot make the directory of the log: %w", outOfSpace(err))
	}
	indexes, others, err := list(disk, l.c.Dir)
	if err != nil {
		return err
	}
	replayed := make([]uint64, len(end.segments))
	for i := range end.segments {
		replayed[i] = end.segments[i].index
	}
	n := len(indexes)
	replaced := n > 0 && indexes[n-1] == h.index && !end.Torn()
	left := n == len(replayed)+1 // by an attempt that found no space
	if replaced || left {
		if err := l.checkVoid(h); err != nil {
			return err
		}
		indexes = slices.DeleteFunc(indexes, func(index uint64) bool { return index == h.index })
		replayed = slices.DeleteFunc(replayed, func(index uint64) bool { return index == h.index })
	}
	if !slices.Equal(indexes, replayed) {
		return fmt.Errorf("the log in %s holds segments %v, those replayed are %v", l.c.Dir, indexes, replayed)
	}
	oldest := h.index
	if len(indexes) > 0 {
		oldest = indexes[0]
	}
	for _, name := range others {
		if index, tail := tailIndex(name); isTemporary(name) || tail && index < oldest {
			if err := disk.Remove(filepath.Join(l.c.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot remove what a crash left: %w", outOfSpace(err))
			}
		}
	}
	return nil
}

// checkVoid checks that the segment that will be replaced by one with the header h is the same and
// holds no record.
func (l *Log) checkVoid(h header) error {
	name := segmentName(l.c.Dir, h.index)
	found, size, err := readHeader(l.c.FS, name)
	if err != nil {
		return err
	}
	f, err := l.c.FS.Open(name)
	if err != nil {
		return fmt.Errorf("cannot open a segment: %w", outOfSpace(err))
	}
	defer f.Close()
	end, err := lastByte(f, headerBytes, size)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	if found.durable = h.durable; found != h || end > headerBytes {
		return fmt.Errorf("the log has changed since it was replayed: %s holds something", name)
	}
	return nil
}

// cut ends the last segment behind its last whole commit and makes it durable.
func (l *Log) cut(g *segment, end End) error {
	f, err := l.c.FS.OpenWrite(g.name)
	if err != nil {
		return fmt.Errorf("cannot open the newest segment: %w", outOfSpace(err))
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("cannot read the size of %s: %w", g.name, err)
	}
	behind, err := lastByte(f, end.offset, size)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", g.name, err)
	}
	if behind > end.offset && !end.Torn() {
		return fmt.Errorf("the log has changed since it was replayed: %s holds more", g.name)
	}
	if behind > end.offset { // else an attempt that found no space has cut it already
		if err := l.keepAside(f, g, end); err != nil {
			return fmt.Errorf("cannot keep aside what a crash left in %s: %w", g.name, err)
		}
		l.logger.Warn("a crash left a part of a commit at the end of the log; it was kept aside and cut off",
			"file", g.name, "offset", end.offset, "bytes", end.torn, "reason", end.reason,
			"aside", g.name+brokenSuffix, "version", end.version, "slot", end.slot)
	}
	if err := l.rewrite(f, g, end); err != nil {
		return fmt.Errorf("cannot write the end of %s again: %w", g.name, err)
	}
	if size > end.offset {
		if err := f.Truncate(end.offset); err != nil {
			return fmt.Errorf("cannot cut %s: %w", g.name, outOfSpace(err))
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot sync %s: %w", g.name, err)
	}
	return nil
}

// keepAside copies the torn tail to a file of its own. A crash may have interrupted an earlier
// attempt; the tail is still in the segment then.
func (l *Log) keepAside(f vfs.File, g *segment, end End) error {
	aside, err := replace(&l.c, g.name+brokenSuffix, func(to vfs.File) error {
		return windows(f, end.offset, end.offset+end.torn, 0, func(b []byte, at int64) error {
			return writeWhole(to, b, at-end.offset)
		})
	})
	if err != nil {
		return err
	}
	_ = aside.Close() // it is synced
	return nil
}

// rewrite writes what is not known durable in the last segment once more, as it is. After a
// sync that failed, the system may hold such pages as clean though they never reached the
// disk; a sync means something only for pages that are written again.
func (l *Log) rewrite(f vfs.File, g *segment, end End) error {
	from := int64(headerBytes)
	if end.durable > g.position+headerBytes {
		from = g.offset(end.durable)
	}
	return windows(f, from, end.offset, 0, func(b []byte, at int64) error { return writeWhole(f, b, at) })
}
