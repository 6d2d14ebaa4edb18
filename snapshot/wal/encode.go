package wal

import (
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// encoded is a commit on its way to the log. The zero value is ready to use, again and again.
type encoded struct {
	buf    []byte // the frames, with their headers still empty: what those say depends on the place
	starts []int  // of the frames in buf, and the end of the last
}

// encode encodes the records of one commit, whose versions must go on from next, in place of what e held. The records are not kept.
func (e *encoded) encode(records []*ledger.Record, next ledger.Version) error {
	if cap(e.buf) > keptBufferBytes {
		e.buf = nil
	}
	e.buf, e.starts = e.buf[:0], append(e.starts[:0], 0)
	for i, r := range records {
		if want := next + ledger.Version(i); r.Version != want {
			return fmt.Errorf("cannot commit record %d to the log: record %d is next", r.Version, want)
		}
		start := len(e.buf)
		e.buf = codec.AppendRecord(append(e.buf, make([]byte, frameBytes)...), r)
		if n := len(e.buf) - start - frameBytes; n > maxPayloadBytes {
			return fmt.Errorf("record %d takes %d bytes, a frame holds up to %d", r.Version, n, maxPayloadBytes)
		}
		e.buf = closeFrame(e.buf, start)
		e.starts = append(e.starts, len(e.buf))
	}
	return nil
}

// stamp fills the headers of the frames of the records for a place in a segment, and returns the state after
// the commit, which begins at before.
func (e *encoded) stamp(records []*ledger.Record, segment uint64, before state, durable Position) state {
	after := before
	for i, r := range records {
		f := frame{
			kind: r.Kind, last: i == len(records)-1, version: r.Version, slot: r.Slot, hash: r.Hash,
			segment: uint32(segment), durable: durable, position: after.position,
		}
		if r.Block != nil {
			f.parent = r.Block.ParentSlot
		}
		b := e.buf[e.starts[i]:e.starts[i+1]]
		f.size, f.link = len(b), f.stamp(b, after.chain)
		after = f.after(after.slot)
	}
	return after
}
