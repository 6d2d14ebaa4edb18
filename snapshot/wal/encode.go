package wal

import (
	"fmt"
	"hash/crc32"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// encoded is a commit on its way to the log. The zero value is ready to use, again and again.
type encoded struct {
	buf    []byte   // the frames, with their headers still empty: what those say depends on the place
	frames []frame  // but for their place
	starts []int    // of the frames in buf, and the end of the last
	sums   []uint32 // checksum of what follows each header
}

// encode encodes the records of one commit in place of what e held. Their versions must
// increase by one. The records are not kept.
func (e *encoded) encode(records []*ledger.Record) error {
	if cap(e.buf) > keptBufferBytes {
		e.buf = nil
	}
	e.buf, e.frames, e.starts, e.sums = e.buf[:0], e.frames[:0], append(e.starts[:0], 0), e.sums[:0]
	for i, r := range records {
		if want := records[0].Version + ledger.Version(i); r.Version != want {
			return fmt.Errorf("cannot encode record %d for the log: record %d is next", r.Version, want)
		}
		start := len(e.buf)
		e.buf = codec.AppendRecord(append(e.buf, make([]byte, frameBytes)...), r)
		if n := len(e.buf) - start - frameBytes; n > maxPayloadBytes {
			return fmt.Errorf("record %d takes %d bytes, a frame holds up to %d", r.Version, n, maxPayloadBytes)
		}
		e.buf = closeFrame(e.buf, start)
		e.frames = append(e.frames, frameOf(r, i == len(records)-1))
		e.starts = append(e.starts, len(e.buf))
		e.sums = append(e.sums, crc32.Checksum(e.buf[start+frameBytes:], castagnoli))
	}
	return nil
}

// stamp fills the headers of the frames for a place in a segment, and returns the state after
// the commit, which begins at before.
func (e *encoded) stamp(segment uint64, before state, durable Position) state {
	after := before
	for i := range e.frames {
		f := &e.frames[i]
		f.segment, f.durable = uint32(segment), durable
		f.position = before.position + Position(e.starts[i])
		after.chain = f.stamp(e.buf[e.starts[i]:e.starts[i+1]], e.sums[i], after.chain)
		after.slot = tipAfter(after.slot, f.kind, f.slot)
		after.version = f.version
	}
	after.position += Position(len(e.buf))
	return after
}
