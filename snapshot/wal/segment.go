package wal

import (
	"errors"
	"fmt"
	"io"

	"ledgerd/snapshot/vfs"
)

// segment is a file of the log.
type segment struct {
	header
	name string // path
	size int64  // of the file, preallocated space included; in a Log only what was written
}

// offset returns where in the segment a position is.
func (g *segment) offset(p Position) int64 { return int64(p - g.position) }

// readHeader reads the header of a segment and the size of the file.
func readHeader(disk vfs.FS, name string) (header, int64, error) {
	f, err := disk.Open(name)
	if err != nil {
		return header{}, 0, fmt.Errorf("cannot open a segment: %w", outOfSpace(err))
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return header{}, 0, fmt.Errorf("cannot read the size of %s: %w", name, err)
	}
	b := make([]byte, headerBytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return header{}, 0, fmt.Errorf("cannot read %s: %w", name, err)
	}
	h, err := decodeSegmentHeader(name, b[:n])
	return h, size, err
}

// createSegment makes a segment, with its header durable and its space preallocated, and names it in newest.
// It may replace a segment of the same index and the same header that holds no record. If
// its error matches ErrNoSpace it may be called again.
func createSegment(c *Config, h header, room int64) (vfs.File, error) {
	name := segmentName(c.Dir, h.index)
	f, err := replaceFile(c, name, func(f vfs.File) error {
		if err := outOfSpace(f.Preallocate(room)); err != nil {
			return err
		}
		return writeAt(f, h.encode(), 0)
	})
	if err == nil {
		err = announce(c, newest{index: h.index, durable: h.position})
		if err != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot begin segment %d: %w", h.index, err)
	}
	return f, nil
}
