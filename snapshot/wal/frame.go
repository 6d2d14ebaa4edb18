package wal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"ledgerd/engine/ledger"
)

// Position counts bytes from the beginning of the log, headers of segments included, whatever
// was pruned since. Frames and headers begin at multiples of 8.
type Position uint64

// chain is the value that links a frame to all that came before it. It is zero at the
// beginning of the log.
type chain [16]byte

const (
	frameBytes  = 104 // of a frame's header
	frameMarker = 0xf7a3
	frameLast   = 1 << 0 // flag: the last record of its commit

	// maxPayloadBytes bounds a record. It is far above what a block can hold; what is
	// longer would be refused when read back.
	maxPayloadBytes = 1 << 30

	crcAt   = 84
	chainAt = 88
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is what surrounds a record in a segment:
//
//	 0  length     u32  of the payload
//	 4  marker     u16  0xf7a3
//	 6  kind       u8   block 1, rollback 2, status 3, base 4
//	 7  flags      u8   bit 0: last record of its commit; the others are 0
//	 8  position   u64  of this frame
//	16  durable    u64  highest position known durable when the frame was written
//	24  version    u64
//	32  slot       u64
//	40  parent     u64  the block's parent slot; 0 without a block
//	48  hash       32
//	80  segment    u32  low half of the index of the segment
//	84  crc        u32  CRC32C of the payload, the padding and bytes 0 to 84, in this order
//	88  chain      16   first half of SHA-256(chain of the frame before, bytes 0 to 88)
//	104 payload         the record, as codec.AppendRecord writes it
//	    padding         zeros up to a multiple of 8
//
// All numbers are little endian. What the header repeats of the record lets a reader check and
// list a log without decoding it. Position and segment tie a frame to its place: a search after
// damage finds no frame that lies there by accident.
type frame struct {
	kind     ledger.RecordKind
	last     bool
	segment  uint32
	position Position
	durable  Position
	version  ledger.Version
	slot     ledger.Slot
	parent   ledger.Slot
	hash     ledger.Hash
	link     chain // value of the chain after it
	size     int   // of the whole, padding included
}

// padded returns the size of a frame whose payload has n bytes.
func padded(n int) int { return (frameBytes + n + 7) &^ 7 }

// closeFrame ends the frame that begins at dst[start:] with room for its header: it appends the padding that the
// payload needs, and notes the payload's length.
func closeFrame(dst []byte, start int) []byte {
	n := len(dst) - start - frameBytes
	dst = append(dst, make([]byte, padded(n)-frameBytes-n)...)
	binary.LittleEndian.PutUint32(dst[start:], uint32(n))
	return dst
}

// stamp fills the header of b, a whole frame that closeFrame ended. It returns the chain value after the frame.
func (f *frame) stamp(b []byte, before chain) chain {
	le := binary.LittleEndian
	le.PutUint16(b[4:], frameMarker)
	b[6] = byte(f.kind)
	b[7] = 0
	if f.last {
		b[7] = frameLast
	}
	le.PutUint64(b[8:], uint64(f.position))
	le.PutUint64(b[16:], uint64(f.durable))
	le.PutUint64(b[24:], uint64(f.version))
	le.PutUint64(b[32:], uint64(f.slot))
	le.PutUint64(b[40:], uint64(f.parent))
	copy(b[48:], f.hash[:])
	le.PutUint32(b[80:], f.segment)
	le.PutUint32(b[crcAt:], frameCRC(b))
	after := chainAfter(before, b)
	copy(b[chainAt:], after[:])
	return after
}

// frameCRC returns the checksum of a whole frame: everything but itself and the chain, the header last.
func frameCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[frameBytes:], castagnoli), castagnoli, b[:crcAt])
}

// chainAfter returns the chain value of the frame b.
func chainAfter(before chain, b []byte) chain {
	var in [len(before) + chainAt]byte
	copy(in[copy(in[:], before[:]):], b[:chainAt])
	sum := sha256.Sum256(in[:])
	return chain(sum[:])
}

// decodeHeader reads the header of a frame. It does not check the checksum. It returns ErrTorn if b
// ends before the header does, and ErrCorrupt for what is no frame.
func decodeHeader(b []byte) (f frame, err error) {
	if len(b) < frameBytes {
		return f, fmt.Errorf("%w: %d bytes of a frame's header", ErrTorn, len(b))
	}
	le := binary.LittleEndian
	n := le.Uint32(b)
	f = frame{
		kind:     ledger.RecordKind(b[6]),
		last:     b[7] == frameLast,
		position: Position(le.Uint64(b[8:])),
		durable:  Position(le.Uint64(b[16:])),
		version:  ledger.Version(le.Uint64(b[24:])),
		slot:     ledger.Slot(le.Uint64(b[32:])),
		parent:   ledger.Slot(le.Uint64(b[40:])),
		hash:     ledger.Hash(b[48:80]),
		segment:  le.Uint32(b[80:]),
		link:     chain(b[chainAt:frameBytes]),
		size:     padded(int(n)),
	}
	switch {
	case le.Uint16(b[4:]) != frameMarker:
		err = fmt.Errorf("%w: no frame begins here", ErrCorrupt)
	case n > maxPayloadBytes:
		err = fmt.Errorf("%w: a length of %d", ErrCorrupt, n)
	case f.kind < ledger.BlockRecord || f.kind > ledger.BaseRecord:
		err = fmt.Errorf("%w: unknown kind of record %d", ErrCorrupt, f.kind)
	case b[7]&^frameLast != 0:
		err = fmt.Errorf("%w: unknown flags %#x", ErrCorrupt, b[7])
	}
	return f, err
}

// checkFrame returns ErrCorrupt if b, a frame whose header was decoded, is not as it was written. It does not know the chain
// value before, so it cannot tell whether the frame's own is right.
func checkFrame(b []byte) error {
	if got, want := frameCRC(b), binary.LittleEndian.Uint32(b[crcAt:]); got != want {
		return fmt.Errorf("%w: checksum %08x instead of %08x", ErrCorrupt, got, want)
	}
	if padding := b[frameBytes+len(payload(b)):]; len(bytes.Trim(padding, "\x00")) > 0 {
		return fmt.Errorf("%w: padding that is not zero", ErrCorrupt)
	}
	return nil
}

// payload returns the encoded record in the frame at the front of b.
func payload(b []byte) []byte {
	return b[frameBytes : frameBytes+int(binary.LittleEndian.Uint32(b))]
}
