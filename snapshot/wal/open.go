package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Open reads the log in c.Dir, beginning with the commit that holds record from, or with the oldest commit if from is 0. It
// calls visit for every whole commit, in order, and returns the log, to be settled and written. A torn tail is noted in
// End and is no error. An empty or missing directory is an empty log. Of the segments before the one that holds from, Open
// reads only the headers. Open changes nothing, and until the log is closed no other process may change it.
//
// Damage is a *CorruptError, a newer format a *vfs.FormatError. If from is neither in the log nor the version that
// the log goes on with, the error is ErrMissing. An error of visit is returned as it is. Before any error visit may have been
// called for some commits. Entries and their records belong to the caller, who must not publish them before
// Settle has returned: until then a power cut may lose them.
func Open(ctx context.Context, c Config, from ledger.Version, visit func([]Entry) error) (*Log, error) {
	end, err := replay(ctx, &c, from, visit)
	if err != nil {
		return nil, err
	}
	return newLog(c, end), nil
}

// Create begins an empty log whose first record will be next; the records before it are held elsewhere. tip is the chain's tip
// before it. The log takes the space of a segment. The directory may hold no segment.
func Create(c Config, next ledger.Version, tip ledger.Slot) (*Log, error) {
	if indexes, _, err := list(c.FS, c.Dir); err != nil {
		return nil, err
	} else if len(indexes) > 0 {
		return nil, fmt.Errorf("%s holds a log already", c.Dir)
	}
	l := newLog(c, End{state: state{version: next - 1, slot: tip}})
	if err := l.begin(); err != nil {
		return nil, err
	}
	return l, nil
}

// newLog returns a log that was read up to its end and is not yet settled.
func newLog(c Config, end End) *Log {
	c.Logger, c.SegmentBytes = cmp.Or(c.Logger, slog.Default()), cmp.Or(c.SegmentBytes, DefaultSegmentBytes)
	l := &Log{c: c, found: end, failed: make(chan struct{}), announcing: make(chan struct{}, 1)}
	l.stats.Store(new(Stats))
	l.saver, l.syncer = time.AfterFunc(saveEvery, l.saveDurable), time.AfterFunc(saveEvery, l.syncLater)
	l.saver.Stop()
	l.syncer.Stop()
	return l
}

// End returns where Open found the end of the log.
func (l *Log) End() End { return l.found }

// Settle makes durable what Open found, and cuts what a crash left after the end. It copies the
// cut bytes to a file named like the segment with .broken added. The first commit begins a segment there; until then
// the log takes space only for the copy.
//
// A crash may interrupt Settle at any moment, any number of times. After an error that
// matches ErrNoSpace it may be called again; the first commit calls it if need be.
func (l *Log) Settle() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settleLocked()
}

func (l *Log) settleLocked() error {
	if l.first != nil {
		return nil
	}
	first, kept := l.found.next()
	if err := l.clear(first.index); err != nil {
		return err
	}
	if n := len(l.found.segments); n > 0 {
		if err := l.cut(&l.found.segments[n-1]); err != nil {
			return err
		}
	}
	l.first, l.segments, l.state, l.durable = &first, kept, l.found.state, l.found.state
	l.publishLocked()
	return nil
}

// begin begins the segment that the first commit needs.
func (l *Log) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beginFirstLocked()
}

// beginFirstLocked settles the log and begins the first segment of this process.
func (l *Log) beginFirstLocked() error {
	if err := l.settleLocked(); err != nil {
		return err
	}
	room := l.c.SegmentBytes
	f, err := createSegment(&l.c, l.first.header, room)
	if err != nil {
		return l.failUnlessFull(err)
	}
	l.beginLocked(f, *l.first, room)
	l.publishLocked()
	return nil
}

// next returns the segment that the log goes on with, and the segments before it.
func (e *End) next() (segment, []segment) {
	n := len(e.segments)
	if n == 0 {
		return segment{header: e.header(1)}, nil
	}
	kept := slices.Clone(e.segments)
	g := &kept[n-1]
	if e.offset == headerBytes {
		// The last segment holds no record, and is replaced: empty segments do not pile up.
		return *g, kept[:n-1]
	}
	g.size = e.offset
	return segment{header: e.header(g.index + 1)}, kept
}

// clear makes the directory, and removes temporary files and the tails of segments that were pruned. next is the index of the
// segment that will be made.
func (l *Log) clear(next uint64) error {
	disk := l.c.FS
	if err := disk.MkdirAll(l.c.Dir); err != nil {
		return fmt.Errorf("cannot make the directory of the log: %w", outOfSpace(err))
	}
	indexes, others, err := list(disk, l.c.Dir)
	if err != nil {
		return err
	}
	for _, name := range others {
		index, tail := segmentIndex(strings.TrimSuffix(name, brokenSuffix)) // a tail whose segment was pruned
		if isTemporary(name) || tail && index < next && !slices.Contains(indexes, index) {
			if err := disk.Remove(filepath.Join(l.c.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot remove what a crash left: %w", outOfSpace(err))
			}
		}
	}
	return nil
}

// cut ends the last segment after its last whole commit and makes it durable.
func (l *Log) cut(g *segment) error {
	end := &l.found
	f, err := l.c.FS.OpenWrite(g.name)
	if err != nil {
		return fmt.Errorf("cannot open the newest segment: %w", outOfSpace(err))
	}
	defer f.Close()
	if end.Torn() {
		if err := l.keepAside(f, g); err != nil {
			return fmt.Errorf("cannot keep aside what a crash left in %s: %w", g.name, err)
		}
		l.c.Logger.Warn("a crash left a part of a commit at the end of the log; it was kept aside and cut off",
			"file", g.name, "offset", end.offset, "bytes", end.torn, "reason", end.reason,
			"aside", g.name+brokenSuffix, "version", end.version, "slot", end.slot)
	}
	if err := l.rewrite(f, g); err != nil {
		return fmt.Errorf("cannot write the end of %s again: %w", g.name, err)
	}
	if err := f.Truncate(end.offset); err != nil {
		return fmt.Errorf("cannot cut %s: %w", g.name, outOfSpace(err))
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot sync %s: %w", g.name, err)
	}
	return nil
}

// keepAside copies the torn tail to a file of its own. If a crash interrupted an earlier
// attempt, the tail is still in the segment.
func (l *Log) keepAside(f vfs.File, g *segment) error {
	aside, err := replaceFile(&l.c, g.name+brokenSuffix, func(to vfs.File) error {
		_, err := io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(f, l.found.offset, l.found.torn))
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
func (l *Log) rewrite(f vfs.File, g *segment) error {
	from, end := int64(headerBytes), &l.found
	if end.durable > g.position+headerBytes {
		from = g.offset(end.durable)
	}
	_, err := io.Copy(io.NewOffsetWriter(f, from), io.NewSectionReader(f, from, end.offset-from))
	return outOfSpace(err)
}
