package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

const (
	nonceBytes    = 16
	maxClaimBytes = nonceBytes + 256 // with the name of the node
	// minRecordBytes is less than any record takes: it bounds how many a commit may claim to hold.
	minRecordBytes = 4 + 64
	// keptBytes is how much room is kept from one commit for the next.
	keptBytes = 64 << 20
)

// encoder makes messages of commits. Its room is used again: what encode returned is valid until the next call.
type encoder struct {
	zstd     *zstd.Encoder
	raw      []byte
	packed   []byte
	room     []byte
	messages [][]byte
}

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true)) // a checksum of our own covers it
	if err != nil {
		return nil, fmt.Errorf("cannot make a compressor: %w", err)
	}
	return &encoder{zstd: z}, nil
}

// encode returns the messages of a commit that comes after a cursor, and the cursor after it, but for its sequence.
func (e *encoder) encode(records []*ledger.Record, before cursor) ([][]byte, cursor, error) {
	if len(records) == 0 {
		return nil, before, errors.New("a commit without records")
	}
	e.raw = recycled(e.raw)
	for i, r := range records {
		if want := before.point.Version + ledger.Version(i) + 1; r.Version != want {
			return nil, before, fmt.Errorf("record %d where %d comes next", r.Version, want)
		}
		at := len(e.raw)
		e.raw = append(e.raw, 0, 0, 0, 0)
		e.raw = codec.AppendRecord(e.raw, r)
		if len(e.raw) > maxCommitBytes {
			return nil, before, fmt.Errorf("a commit of more than %d bytes", maxCommitBytes)
		}
		binary.LittleEndian.PutUint32(e.raw[at:], uint32(len(e.raw)-at-4))
	}
	e.packed = e.zstd.EncodeAll(e.raw, recycled(e.packed))
	payload := e.packed
	stored := len(e.packed) >= len(e.raw) || len(e.raw) > maxRatio*len(e.packed)
	if stored {
		payload = e.raw
	}
	h := head{
		kind: commitMessage, stored: stored, epoch: before.epoch, first: records[0].Version, records: uint32(len(records)),
		chunks: uint32((len(payload) + maxChunkBytes - 1) / maxChunkBytes), crc: crc32.Checksum(payload, castagnoli),
		raw: uint32(len(e.raw)), packed: uint32(len(payload)), chain: before.chain, state: before.point.StateHash,
	}
	last := records[len(records)-1]
	after := before
	after.chain = h.after(e.raw)
	after.point = ledger.PointAfter(last)
	return e.split(&h, payload), after, nil
}

// split makes messages of a payload.
func (e *encoder) split(h *head, payload []byte) [][]byte {
	clear(e.messages)
	e.room, e.messages = recycled(e.room), e.messages[:0]
	if need := len(payload) + int(h.chunks)*headBytes; cap(e.room) < need {
		e.room = make([]byte, 0, need) // the messages refer to it: it must not move
	}
	for h.chunk = 0; h.chunk < h.chunks; h.chunk++ {
		n := min(len(payload), maxChunkBytes)
		start := len(e.room)
		e.room = append(h.append(e.room), payload[:n]...)
		e.messages = append(e.messages, e.room[start:])
		payload = payload[n:]
	}
	return e.messages
}

// recycled returns room to append to: the same again, unless it became unusually large.
func recycled(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}

// encodeClaim returns the message by which a node becomes the writer after a cursor.
func encodeClaim(before cursor, node string, nonce [nonceBytes]byte) []byte {
	payload := append(nonce[:], node[:min(len(node), maxClaimBytes-nonceBytes)]...)
	h := head{
		kind: claimMessage, stored: true, epoch: before.epoch + 1, first: before.point.Version + 1, chunks: 1,
		crc: crc32.Checksum(payload, castagnoli), raw: uint32(len(payload)), packed: uint32(len(payload)),
		chain: before.chain, state: before.point.StateHash,
	}
	return append(h.append(nil), payload...)
}
