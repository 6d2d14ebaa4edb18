package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"ledgerd/snapshot/vfs"
)

// durableAfter searches a segment for whole frames after the frame at off, which is not whole,
// and returns the highest position known durable that one of them names.
func durableAfter(f vfs.File, g *segment, off int64) (durable Position, err error) {
	b, err := fill(f, g, nil, off, g.size-off)
	if err != nil {
		return 0, err
	}
	for i := 8; i+frameBytes <= len(b); i += 8 {
		if binary.LittleEndian.Uint16(b[i+4:]) != frameMarker {
			continue
		}
		h, err := decodeHeader(b[i:])
		if err != nil || h.position != g.position+Position(off)+Position(i) || h.segment != uint32(g.index) || h.durable > h.position {
			continue
		}
		if _, _, err := decodeFrame(b[i:]); err == nil {
			durable = max(durable, h.durable)
		}
	}
	return durable, nil
}

// lastWritten notes where the last byte that is not zero was written to it.
type lastWritten struct{ offset, last int64 }

func (w *lastWritten) Write(b []byte) (int, error) {
	if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
		w.last = w.offset + int64(n)
	}
	w.offset += int64(len(b))
	return len(b), nil
}

// lastByte returns the offset after the last byte from off on that is not zero, or off.
func lastByte(f io.ReaderAt, off, size int64) (int64, error) {
	w := &lastWritten{offset: off, last: off}
	if n, err := io.Copy(w, io.NewSectionReader(f, off, size-off)); err != nil {
		return 0, fmt.Errorf("cannot read at byte %d: %w", off+n, err)
	}
	return w.last, nil
}
