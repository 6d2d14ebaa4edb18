package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ledgerd/snapshot/vfs"
)

// New returns a log that is neither read nor written yet. Its directory is replayed first; Settle is next.
func New(c Config) *Log {
	c.Logger, c.SegmentBytes = cmp.Or(c.Logger, slog.Default()), cmp.Or(c.SegmentBytes, defaultSegmentBytes)
	l := &Log{c: c, failed: make(chan struct{}), announcing: make(chan struct{}, 1)}
	l.stats.Store(new(Stats))
	l.saver, l.syncer = time.AfterFunc(saveEvery, l.saveDurable), time.AfterFunc(saveEvery, l.syncLater)
	l.saver.Stop()
	l.syncer.Stop()
	return l
}

// Settle makes durable what Replay found, and cuts what a crash left after the end. It copies the
// cut bytes to a file named like the segment with .broken added. Nothing else may have changed
// the directory in between. The first commit begins a segment there; until then the log takes space
// only for the copy.
//
// Until Settle has returned a power cut may take away what Replay returned, so the caller must not
// show it before.
//
// A crash may interrupt Settle at any moment, any number of times. After an error that
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
	l.first, l.opened, l.torn, l.segments, l.state, l.durable = &h, end.opened, end.torn, kept, end.state, end.state
	l.publishLocked()
	return nil
}

// Open settles a new log and begins a segment where Replay found its end. The zero End, or
// one of Begin, begins a log in an empty directory. The rules of Settle hold for Open too, which takes the space
// of a segment besides.
func Open(c Config, end End) (*Log, error) {
	l := New(c)
	if err := l.Settle(end); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.beginFirstLocked(); err != nil {
		return nil, err
	}
	return l, nil
}

// beginFirstLocked begins the first segment of a log that was settled.
func (l *Log) beginFirstLocked() error {
	if l.first == nil {
		return fmt.Errorf("the log in %s has not been settled", l.c.Dir)
	}
	room := l.c.SegmentBytes
	f, err := createSegment(&l.c, *l.first, room)
	if err != nil {
		return l.failUnlessFull(err)
	}
	l.beginLocked(f, *l.first, room)
	l.publishLocked()
	if l.opened != nil {
		l.opened.Store(true)
	}
	return nil
}

// next returns the header of the segment that the log goes on with, and the segments before it.
func (e *End) next() (header, []segment) {
	n := len(e.segments)
	if n == 0 {
		return e.header(1), nil
	}
	kept := slices.Clone(e.segments)
	g := &kept[n-1]
	if e.offset == headerBytes {
		// The last segment holds no record, and is replaced: empty segments do not pile up.
		g.durable = g.position
		return g.header, kept[:n-1]
	}
	g.size = e.offset
	if e.Torn() {
		g.aside = e.torn // in place of what an earlier crash left there
	}
	return e.header(g.index + 1), kept
}

// prepare makes the directory, compares it with the end, and removes temporary files and the
// tails of pruned segments. h is the header of the segment that will be made.
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
	for _, name := range others {
		index, tail := segmentIndex(strings.TrimSuffix(name, brokenSuffix)) // a tail whose segment was pruned
		if isTemporary(name) || tail && index < h.index && !slices.Contains(indexes, index) {
			if err := disk.Remove(filepath.Join(l.c.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot remove what a crash left: %w", outOfSpace(err))
			}
		}
	}
	// The segment that will be replaced must be void: a torn one is cut first, one that was not replayed
	// was left by an attempt that found no space.
	if slices.Contains(indexes, h.index) && !(end.Torn() && slices.Contains(replayed, h.index)) {
		if err := checkVoid(&l.c, h); err != nil {
			return err
		}
	}
	isNext := func(index uint64) bool { return index == h.index }
	if indexes, replayed = slices.DeleteFunc(indexes, isNext), slices.DeleteFunc(replayed, isNext); !slices.Equal(indexes, replayed) {
		return fmt.Errorf("the log in %s holds segments %v, those replayed are %v", l.c.Dir, indexes, replayed)
	}
	return nil
}

// checkVoid checks that the segment to be replaced has the header h and holds no record.
func checkVoid(c *Config, h header) error {
	name := segmentName(c.Dir, h.index)
	found, size, err := readHeader(c.FS, name)
	if err != nil {
		return err
	}
	f, err := c.FS.Open(name)
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

// cut ends the last segment after its last whole commit and makes it durable.
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
	written, err := lastByte(f, end.offset, size)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", g.name, err)
	}
	if written > end.offset && !end.Torn() {
		return fmt.Errorf("the log has changed since it was replayed: %s holds more", g.name)
	}
	if written > end.offset { // else an attempt that found no space has cut it already
		if err := l.keepAside(f, g, end); err != nil {
			return fmt.Errorf("cannot keep aside what a crash left in %s: %w", g.name, err)
		}
		l.c.Logger.Warn("a crash left a part of a commit at the end of the log; it was kept aside and cut off",
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

// keepAside copies the torn tail to a file of its own. If a crash interrupted an earlier
// attempt, the tail is still in the segment.
func (l *Log) keepAside(f vfs.File, g *segment, end End) error {
	aside, err := replaceFile(&l.c, g.name+brokenSuffix, func(to vfs.File) error {
		_, err := io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(f, end.offset, end.torn))
		return err
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
	_, err := io.Copy(io.NewOffsetWriter(f, from), io.NewSectionReader(f, from, end.offset-from))
	return outOfSpace(err)
}
