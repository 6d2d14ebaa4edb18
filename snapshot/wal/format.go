package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

const (
	formatVersion = 1
	headerMagic   = "ledgerWL"
	headerBytes   = 80
	newestMagic   = "ledgerWN"
	newestBytes   = 32
	newestName    = "newest"
	segmentSuffix = ".wal"
	brokenSuffix  = ".broken"
)

// header is the beginning of a segment:
//
//	 0  magic      8    "ledgerWL"
//	 8  format     u32  1
//	12  unused     u32  0
//	16  index      u64  1 for the first segment of the log, then increasing by one
//	24  first      u64  version of the first record the segment holds or will hold
//	32  position   u64  of this header; where the segment before ends
//	40  durable    u64  the position again: all before it is durable
//	48  slot       u64  the chain's tip after the record before
//	56  chain      16   chain value of the record before
//	72  unused     u32  0
//	76  crc        u32  CRC32C of bytes 0 to 76
//
// All numbers are little endian.
type header struct {
	index    uint64
	first    ledger.Version
	position Position
	slot     ledger.Slot
	chain    chain
}

// encode returns the header's bytes.
func (h *header) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(headerMagic), formatVersion)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint64{h.index, uint64(h.first), uint64(h.position), uint64(h.position), uint64(h.slot)} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(append(b, h.chain[:]...), 0)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeSegmentHeader reads the header of the segment stored under name. It returns ErrTorn,
// ErrCorrupt or a *vfs.FormatError.
func decodeSegmentHeader(name string, b []byte) (header, error) {
	if err := checkFile(name, b, headerMagic, headerBytes); err != nil {
		return header{}, err
	}
	le := binary.LittleEndian
	return header{
		index:    le.Uint64(b[16:]),
		first:    ledger.Version(le.Uint64(b[24:])),
		position: Position(le.Uint64(b[32:])),
		slot:     ledger.Slot(le.Uint64(b[48:])),
		chain:    chain(b[56:72]),
	}, nil
}

// checkFile checks what a header and newest have in common: the magic, the format, and a
// checksum at the end. The format comes first: only our own has its checksum there. Where it is
// right for our own, the version is what is damaged.
func checkFile(name string, b []byte, magic string, size int) error {
	if len(b) < size {
		return fmt.Errorf("%w: %d bytes of a header of %d", ErrTorn, len(b), size)
	}
	if string(b[:len(magic)]) != magic {
		return fmt.Errorf("%w: this is not a file of the log", ErrCorrupt)
	}
	le := binary.LittleEndian
	v, want := le.Uint32(b[8:]), le.Uint32(b[size-4:])
	ours := append(le.AppendUint32(slices.Clone(b[:8]), formatVersion), b[12:size-4]...)
	switch got := crc32.Checksum(b[:size-4], castagnoli); {
	case v > formatVersion && crc32.Checksum(ours, castagnoli) != want:
		return &vfs.FormatError{File: name, Version: v, Newest: formatVersion}
	case v == 0:
		return fmt.Errorf("%w: format version 0", ErrCorrupt)
	case got != want:
		return fmt.Errorf("%w: checksum %08x of the header instead of %08x", ErrCorrupt, got, want)
	}
	return nil
}

// segmentName returns the path of a segment.
func segmentName(dir string, index uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016d%s", index, segmentSuffix))
}

// segmentIndex returns the index in a segment's name; ok is false for any other name.
func segmentIndex(name string) (index uint64, ok bool) {
	_, err := fmt.Sscanf(name, "%d"+segmentSuffix, &index)
	return index, err == nil && name == segmentName("", index)
}

// IsFile reports whether a name is of a file that a whole log consists of.
func IsFile(name string) bool {
	_, isSegment := segmentIndex(name)
	return isSegment || name == newestName
}

// isTemporary reports whether the name is of a file of the log that replaceFile has not finished.
func isTemporary(name string) bool {
	name, ok := strings.CutSuffix(name, vfs.TemporarySuffix)
	_, segment := segmentIndex(strings.TrimSuffix(name, brokenSuffix))
	return ok && (segment || name == newestName)
}

// list returns the indexes of the segments in a directory, in order, and the other names in it. A
// directory that does not exist holds none.
func list(disk vfs.FS, dir string) (indexes []uint64, others []string, err error) {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the log: %w", outOfSpace(err))
	}
	for _, name := range names {
		if index, ok := segmentIndex(name); ok {
			indexes = append(indexes, index)
		} else {
			others = append(others, name)
		}
	}
	return indexes, others, nil
}
