package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ledgerd/snapshot/vfs"
)

// openChunkBytes is how much Open reads at once: large enough that the disk reads ahead in full
// stride, small enough that a few of them are nothing.
const openChunkBytes = 2 << 20

// chunk is a run of whole commits on its way from the disk to the decoder and to the caller.
type chunk struct {
	buf     []byte
	base    int64 // offset in the segment of buf[0]
	entries []Entry
	ends    []int // of each commit, in entries
	read    int64 // bytes of the log read so far
}

// payload returns the encoded record of an entry.
func (c *chunk) payload(e *Entry) []byte {
	b := c.buf[e.Offset-c.base:]
	return b[frameBytes : frameBytes+int(binary.LittleEndian.Uint32(b))]
}

// deliver calls visit for each commit of the chunk until it fails.
func (c *chunk) deliver(visit func([]Entry) error) error {
	at := 0
	for _, end := range c.ends {
		if err := visit(c.entries[at:end:end]); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// fill extends b, which begins at base, to n bytes from the file. Bytes after the file's end are zeros: a segment that
// its writer ends while it is read loses the zeros that were preallocated.
func fill(f vfs.File, g *segment, b []byte, base, n int64) ([]byte, error) {
	have := int64(len(b))
	if n <= have {
		return b, nil
	}
	if int64(cap(b)) < n {
		b = append(make([]byte, 0, n), b...)
	}
	b = b[:n]
	m, err := f.ReadAt(b[have:], base+have)
	switch {
	case errors.Is(err, io.EOF):
		clear(b[have+int64(m):])
	case int64(m) < n-have:
		return nil, fmt.Errorf("cannot read %s at byte %d: %w", g.name, base+have+int64(m), err)
	}
	return b, nil
}
