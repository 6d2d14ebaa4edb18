package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"

	"ledgerd/engine/ledger"
)

const (
	headMagic  = "ldgC"
	headFormat = 1
	headBytes  = 100
	headCRCAt  = 96

	// maxMessageBytes bounds a message of the stream, head included.
	maxMessageBytes = 64 << 10
	maxChunkBytes   = maxMessageBytes - headBytes
	// maxCommitBytes bounds a commit before it is compressed: what the log on a node's own disk can hold of one record.
	maxCommitBytes = 1 << 30
	// maxRatio bounds what a compressed byte may become, so that a reader takes no more room than a message can
	// justify. What compresses better is sent as it is.
	maxRatio = 256
)

// kind says what a message is.
type kind uint8

const (
	commitMessage kind = 1
	claimMessage  kind = 2
)

// chain links a commit or claim to all before it. It is zero at the beginning of the stream.
type chain [16]byte

// head is the beginning of a message:
//
//	 0  magic      4    "ldgC"
//	 4  format     u8   1
//	 5  kind       u8   commit 1, claim 2
//	 6  flags      u16  bit 0: the payload is not compressed
//	 8  epoch      u64  of the writer
//	16  first      u64  version of the first record; of a claim: of the next one
//	24  chunk      u32  which message of the commit this is, from 0
//	28  chunks     u32  how many messages the commit has
//	32  records    u32  how many records the commit has
//	36  crc        u32  CRC32C of the payload of all chunks
//	40  raw        u32  bytes of the commit before it was compressed
//	44  packed     u32  bytes of the payload of all chunks
//	48  chain      16   chain value before
//	64  state      u64 × 4  state hash before
//	96  head crc   u32  CRC32C of bytes 0 to 96
//	100 payload
//
// All numbers are little endian. The payload of a commit is, once joined and decompressed, its records, each as u32 length
// and encoding. That of a claim is a number that nobody else drew, 16 bytes, and the name of the node.
//
// The chain value after a message is the first half of SHA-256(chain before, bytes 0 to 24 and 32 to 36 and 40 to 44 and
// 64 to 96 of its head with the flags 0, what the payload becomes).
type head struct {
	kind    kind
	stored  bool // the payload is not compressed
	epoch   uint64
	first   ledger.Version
	chunk   uint32
	chunks  uint32
	records uint32
	crc     uint32
	raw     uint32
	packed  uint32
	chain   chain
	state   ledger.StateHash
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const storedFlag = 1 << 0

// append appends the head's bytes.
func (h *head) append(dst []byte) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = append(dst, headMagic...)
	flags := uint16(0)
	if h.stored {
		flags = storedFlag
	}
	dst = append(dst, headFormat, byte(h.kind))
	dst = le.AppendUint16(dst, flags)
	dst = le.AppendUint64(dst, h.epoch)
	dst = le.AppendUint64(dst, uint64(h.first))
	for _, n := range [...]uint32{h.chunk, h.chunks, h.records, h.crc, h.raw, h.packed} {
		dst = le.AppendUint32(dst, n)
	}
	dst = append(dst, h.chain[:]...)
	for _, word := range h.state {
		dst = le.AppendUint64(dst, word)
	}
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// decodeHead reads the head of a message and checks that one commit or claim can be so. It returns ErrFormat or a
// *DamageError.
func decodeHead(b []byte) (head, error) {
	if len(b) < headBytes || string(b[:4]) != headMagic {
		return head{}, damaged("%d bytes that are no message of a log", len(b))
	}
	if b[4] > headFormat {
		return head{}, ErrFormat
	}
	le := binary.LittleEndian
	if got, want := crc32.Checksum(b[:headCRCAt], castagnoli), le.Uint32(b[headCRCAt:]); got != want {
		return head{}, damaged("checksum %08x of the head instead of %08x", got, want)
	}
	flags := le.Uint16(b[6:])
	h := head{
		kind: kind(b[5]), stored: flags&storedFlag != 0, epoch: le.Uint64(b[8:]), first: ledger.Version(le.Uint64(b[16:])),
		chunk: le.Uint32(b[24:]), chunks: le.Uint32(b[28:]), records: le.Uint32(b[32:]), crc: le.Uint32(b[36:]),
		raw: le.Uint32(b[40:]), packed: le.Uint32(b[44:]), chain: chain(b[48:64]),
	}
	for i := range h.state {
		h.state[i] = le.Uint64(b[64+8*i:])
	}
	if b[4] != headFormat || flags&^storedFlag != 0 {
		return head{}, damaged("format %d, flags %#x", b[4], flags)
	}
	return h, h.check(len(b) - headBytes)
}

// check refuses what no writer writes. payload is how many bytes follow the head.
func (h *head) check(payload int) error {
	switch {
	case h.epoch == 0 || h.first == 0:
		return damaged("epoch %d, version %d", h.epoch, h.first)
	case h.kind == claimMessage:
		if h.chunk != 0 || h.chunks != 1 || h.records != 0 || !h.stored || h.raw != h.packed ||
			int(h.packed) != payload || payload <= nonceBytes || payload > maxClaimBytes {
			return damaged("a claim cannot be so: %d bytes", payload)
		}
		return nil
	case h.kind != commitMessage:
		return damaged("unknown kind of message %d", h.kind)
	}
	full := (uint64(h.packed) + maxChunkBytes - 1) / maxChunkBytes
	switch {
	case h.raw > maxCommitBytes || uint64(h.packed) > maxCommitBytes || h.packed == 0:
		return damaged("a commit of %d bytes, %d compressed", h.raw, h.packed)
	case h.stored && h.raw != h.packed, !h.stored && uint64(h.raw) > maxRatio*uint64(h.packed):
		return damaged("%d bytes that become %d", h.packed, h.raw)
	case uint64(h.chunks) != full || h.chunk >= h.chunks:
		return damaged("chunk %d of %d for %d bytes", h.chunk, h.chunks, h.packed)
	case h.records == 0 || uint64(h.records)*minRecordBytes > uint64(h.raw):
		return damaged("%d records in %d bytes", h.records, h.raw)
	case uint64(h.first)+uint64(h.records) < uint64(h.first):
		return damaged("%d records from version %d", h.records, h.first)
	}
	want := maxChunkBytes
	if h.chunk == h.chunks-1 {
		want = int(h.packed) - int(h.chunk)*maxChunkBytes
	}
	if payload != want {
		return damaged("%d bytes in chunk %d of %d for %d", payload, h.chunk, h.chunks, h.packed)
	}
	return nil
}

// after returns the chain value after the message, whose payload became raw.
func (h *head) after(raw []byte) chain {
	whole := *h
	whole.stored, whole.chunk = false, 0
	var room [headBytes]byte
	b := whole.append(room[:0])
	sum := sha256.New()
	sum.Write(h.chain[:])
	sum.Write(b[:24])
	sum.Write(b[32:36])
	sum.Write(b[40:44])
	sum.Write(b[64:96])
	sum.Write(raw)
	var out [sha256.Size]byte
	return chain(sum.Sum(out[:0])[:len(chain{})])
}
