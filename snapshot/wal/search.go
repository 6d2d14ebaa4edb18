package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// durableAfter searches a segment for whole frames after the frame at off, which is not whole,
// and returns the highest position known durable that one of them names.
func durableAfter(f io.ReaderAt, g *segment, off int64) (Position, error) {
	var durable Position
	// Windows overlap by a header less one step, so that each place is looked at with the
	// whole header at hand.
	err := windows(f, off+8, g.size, frameBytes-8, func(b []byte, at int64) error {
		for i := 0; i+frameBytes <= len(b); i += 8 {
			if binary.LittleEndian.Uint16(b[i+4:]) != frameMarker {
				continue
			}
			h, err := decodeHeader(b[i:])
			offset := at + int64(i)
			if err != nil || h.position != g.position+Position(offset) || h.segment != uint32(g.index) ||
				h.durable <= durable || h.durable > h.position || offset+int64(h.size) > g.size {
				continue
			}
			whole, err := checksumAt(f, b[i:i+frameBytes], offset, int64(h.size))
			if err != nil {
				return err
			}
			if whole {
				durable = h.durable
			}
		}
		return nil
	})
	return durable, err
}

// checksumAt tells whether the frame at off, whose header is b, has the checksum it names. It
// reads the rest piece by piece: the length may be wrong.
func checksumAt(f io.ReaderAt, b []byte, off, size int64) (bool, error) {
	sum := crc32.New(castagnoli)
	_, err := io.Copy(sum, io.NewSectionReader(f, off+frameBytes, size-frameBytes))
	sum.Write(b[:crcAt])
	return sum.Sum32() == binary.LittleEndian.Uint32(b[crcAt:]), err
}

// windows reads from off to end in pieces, each of which begins overlap bytes before the end of
// the one before, and hands them on with their offset.
func windows(f io.ReaderAt, off, end int64, overlap int, visit func(b []byte, at int64) error) error {
	if off >= end {
		return nil
	}
	buf := make([]byte, min(chunkBytes/2, end-off))
	for {
		b := buf[:min(int64(len(buf)), end-off)]
		if n, err := f.ReadAt(b, off); n < len(b) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("cannot read at byte %d: %w", off+int64(n), err)
		}
		if err := visit(b, off); err != nil {
			return err
		}
		if off += int64(len(b)); off >= end {
			return nil
		}
		off -= int64(overlap)
	}
}

// lastByte returns the offset behind the last byte from off on that is not zero, or off.
func lastByte(f io.ReaderAt, off, size int64) (int64, error) {
	last := off
	err := windows(f, off, size, 0, func(b []byte, at int64) error {
		// Comparing a piece with itself one byte on is ten times as fast as a look at each byte.
		if b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1]) {
			return nil
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != 0 {
				last = at + int64(i) + 1
				break
			}
		}
		return nil
	})
	return last, err
}
