package cluster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// cursor is a position in the stream after a message.
type cursor struct {
	sequence uint64 // of that message; 0: before the first
	epoch    uint64 // of the writer there; 0: of none yet
	chain    chain
	point    ledger.LogPoint // after the last whole commit
}

// decoder takes messages in and makes commits of them. It refuses what does not belong where it stands.
type decoder struct {
	at     cursor
	joined bool // at tells epoch and chain: a message was taken in
	// from is where a node stands that joined in the middle of a commit: what the commit holds up to there is
	// checked and dropped.
	from ledger.LogPoint

	zstd    *zstd.Decoder
	pending head // of the commit that is not whole yet
	chunks  uint32
	packed  []byte
	raw     []byte
	damage  func(sequence uint64, err error) error // notes where damage is, and returns it
}

// newDecoder returns a decoder that stands before a message of the stream, with what a node holds.
func newDecoder(before uint64, from ledger.LogPoint, damage func(uint64, error) error) (*decoder, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxCommitBytes),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("cannot make a decompressor: %w", err)
	}
	return &decoder{at: cursor{sequence: before, point: from}, from: from, zstd: z, damage: damage}, nil
}

func (d *decoder) close() { d.zstd.Close() }

// take takes the next message in. It returns a commit when the message made one whole: the records after where the node
// stands, if any. The records are the caller's. Errors are permanent: nothing more can be taken in.
func (d *decoder) take(sequence uint64, message []byte) ([]*ledger.Record, error) {
	records, err := d.takeNext(sequence, message)
	return records, d.damage(sequence, err)
}

func (d *decoder) takeNext(sequence uint64, message []byte) ([]*ledger.Record, error) {
	if sequence != d.at.sequence+1 {
		return nil, damaged("message %d comes next", d.at.sequence+1)
	}
	h, err := decodeHead(message)
	if err != nil {
		return nil, err
	}
	if !d.joined {
		if err := d.join(&h); err != nil {
			return nil, err
		}
	}
	payload := message[headBytes:]
	if err := d.checkFits(&h); err != nil {
		return nil, err
	}
	var commit []*ledger.Record
	if h.kind == claimMessage {
		err = d.claim(&h, payload)
	} else {
		commit, err = d.commit(&h, payload)
	}
	if err != nil {
		return nil, err
	}
	d.at.sequence = sequence
	return commit, nil
}

// join adopts what the first message says of what was before, as far as the node cannot know.
func (d *decoder) join(h *head) error {
	if h.chunk != 0 {
		return damaged("a commit begins with chunk %d", h.chunk)
	}
	switch next := d.from.Version + 1; {
	case h.first > next:
		return fmt.Errorf("%w: it begins with version %d, %d comes next", ErrPurged, h.first, next)
	case h.first == next && h.state != d.from.StateHash:
		return fmt.Errorf("%w: after version %d its state hash is %s, this node's is %s", ErrOtherLedger, d.from.Version, h.state, d.from.StateHash)
	}
	d.at.epoch, d.at.chain = h.epoch, h.chain
	if h.kind == claimMessage {
		d.at.epoch-- // it is the claim that begins it
	}
	d.at.point = ledger.LogPoint{Version: h.first - 1, StateHash: h.state}
	if h.first == d.from.Version+1 {
		d.at.point = d.from
	}
	d.joined = true
	return nil
}

// checkFits checks a message against what came before it.
func (d *decoder) checkFits(h *head) error {
	switch {
	case h.kind == claimMessage && h.epoch <= d.at.epoch, h.kind == commitMessage && h.epoch != d.at.epoch:
		return damaged("epoch %d after %d", h.epoch, d.at.epoch)
	case h.chain != d.at.chain:
		return damaged("it belongs after %x, not %x", h.chain, d.at.chain)
	case h.first != d.at.point.Version+1:
		return damaged("version %d after %d", h.first, d.at.point.Version)
	case h.state != d.at.point.StateHash:
		return damaged("it belongs after state hash %s, not %s", h.state, d.at.point.StateHash)
	case h.kind == commitMessage && h.chunk != d.chunks:
		return damaged("chunk %d where %d comes next", h.chunk, d.chunks)
	}
	if d.chunks > 0 && h.kind == commitMessage {
		same := *h
		same.chunk = d.pending.chunk
		if same != d.pending {
			return damaged("chunk %d is of another commit", h.chunk)
		}
	}
	return nil
}

// claim lets an epoch begin. What the writer before left unfinished is nothing.
func (d *decoder) claim(h *head, payload []byte) error {
	if got := crc32.Checksum(payload, castagnoli); got != h.crc {
		return damaged("checksum %08x of the claim instead of %08x", got, h.crc)
	}
	d.chunks, d.packed = 0, recycled(d.packed)
	d.at.epoch, d.at.chain = h.epoch, h.after(payload)
	return nil
}

func (d *decoder) commit(h *head, payload []byte) ([]*ledger.Record, error) {
	if h.chunk == 0 {
		d.pending, d.packed = *h, recycled(d.packed)
	}
	d.packed = append(d.packed, payload...)
	d.chunks++
	if d.chunks < h.chunks {
		return nil, nil
	}
	d.chunks = 0
	if got := crc32.Checksum(d.packed, castagnoli); got != h.crc {
		return nil, damaged("checksum %08x of the commit instead of %08x", got, h.crc)
	}
	raw := d.packed
	if !h.stored {
		d.raw = recycled(d.raw)
		if cap(d.raw) < int(h.raw) {
			d.raw = make([]byte, 0, h.raw)
		}
		var err error
		// The room is what the head says: what wants to become more fails.
		if d.raw, err = d.zstd.DecodeAll(d.packed, d.raw[:0:h.raw]); err != nil {
			return nil, damaged("cannot decompress it: %v", err)
		}
		raw = d.raw
	}
	if len(raw) != int(h.raw) {
		return nil, damaged("it becomes %d bytes instead of %d", len(raw), h.raw)
	}
	records, err := decodeRecords(h, raw)
	if err != nil {
		return nil, err
	}
	last := records[len(records)-1]
	d.at.chain = h.after(raw)
	d.at.point = ledger.PointAfter(last)
	return d.notHeld(records)
}

// notHeld returns the records that the node does not hold, after it checked those that it does.
func (d *decoder) notHeld(records []*ledger.Record) ([]*ledger.Record, error) {
	first := records[0].Version
	if first > d.from.Version {
		return records, nil
	}
	held := d.from.Version - first + 1
	if uint64(held) > uint64(len(records)) { // all of it is held
		return nil, nil
	}
	if same := ledger.PointAfter(records[held-1]); same != d.from {
		return nil, fmt.Errorf("%w: its record of version %d is another one, of slot %d with state hash %s; this node's is of slot %d with %s",
			ErrOtherLedger, same.Version, same.Slot, same.StateHash, d.from.Slot, d.from.StateHash)
	}
	return records[held:], nil
}

// decodeRecords reads the records of a commit.
func decodeRecords(h *head, raw []byte) ([]*ledger.Record, error) {
	records := make([]*ledger.Record, 0, h.records)
	for len(raw) > 0 {
		if len(raw) < 4 || uint64(binary.LittleEndian.Uint32(raw)) > uint64(len(raw)-4) {
			return nil, damaged("record %d is cut short", len(records))
		}
		n := int(binary.LittleEndian.Uint32(raw)) + 4
		r, err := codec.DecodeRecord(raw[4:n])
		if err != nil {
			return nil, damaged("record %d: %v", len(records), err)
		}
		if want := h.first + ledger.Version(len(records)); r.Version != want || uint32(len(records)) == h.records {
			return nil, damaged("record %d has version %d", len(records), r.Version)
		}
		records = append(records, r)
		raw = raw[n:]
	}
	if len(records) != int(h.records) {
		return nil, damaged("%d records instead of %d", len(records), h.records)
	}
	return records, nil
}

// isClaim reports whether a message is a claim that was made with a nonce.
func isClaim(message, nonce []byte) bool {
	h, err := decodeHead(message)
	return err == nil && h.kind == claimMessage && bytes.HasPrefix(message[headBytes:], nonce)
}
