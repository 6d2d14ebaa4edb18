package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// Snapshots and history files have one format. Numbers are little endian.
//
//	header                                             16 bytes, the same in all versions
//	  magic             8   "ledgerSN" snapshot, "ledgerHI" history, "ledgerRN" run of an archive
//	  format version    u32
//	  checksum          u32 CRC32C of the 12 bytes before
//	chunk × n                one zstd frame each, back to back
//	index: entry × n         in the order of the chunks   81 bytes each
//	  kind              u8  accounts 1, mints 2, blocks 3, meta 4, signatures 5, filters 6
//	  stored            u32 bytes of the frame
//	  raw               u32 bytes it decodes to
//	  count             u32 items in it
//	  checksum          u32 CRC32C of the frame
//	  first key         32  of the first item; of a block and a filter its slot, u64 big endian, then zeros;
//	  last key          32  of the last one;     of a signature its bytes and slot, then zeros; of meta zeros
//	footer                                             44 bytes
//	  index length      u32 bytes
//	  hash              32  SHA-256 of header, index and index length
//	  magic             8   "ledgerND"
//
// Where a chunk begins is not written: it is where the one before ends, so that there can be
// neither hole nor overlap, and the index begins where the last chunk ends. The hash covers all
// bytes: those of the chunks through their checksums in the index.
//
// The raw bytes of a chunk are its items, one after the other, in strictly rising order of
// their keys; the key ranges of the chunks of one kind do not overlap, but the chunks may stand
// in any order, as several goroutines write them:
//
//	account   as codec.AppendAccount, before version 4 without data
//	mint      pubkey 32 | as codec.AppendMint
//	block     flags u8: previous known 1 | previous slot u64 | length n u32 |
//	          as codec.AppendEvent n, without writes
//	signature its first 8 bytes | slot u64 big endian, of each transaction; those of one block that begin alike are one
//	filter    slot u64 | length n u32 | n bytes of a bloom.Filter of the first 8 bytes of the keys that the block names
//	meta      JSON, see storedMeta and runMeta
//
// A snapshot has chunks of accounts and mints and ends in one of meta; a history file has
// chunks of blocks only, at least one. A run has a filter for each block, and all signatures.
const (
	// Since version 4 an account has its data. Since 3 the meta has a horizon and what a start needs of the log before. Since 2 an
	// account says whether it is known to be a mint, and a mint has the provenance of each fact.
	formatVersion = 4

	snapshotMagic = "ledgerSN"
	historyMagic  = "ledgerHI"
	runMagic      = "ledgerRN"
	endMagic      = "ledgerND"

	headerBytes = 8 + 4 + 4
	entryBytes  = 1 + 4*4 + 2*len(ledger.Pubkey{})
	footerBytes = 4 + sha256.Size + 8
)

// kind says what the items of a chunk are.
type kind uint8

const (
	accountChunk kind = iota + 1
	mintChunk
	blockChunk
	metaChunk
	signatureChunk
	filterChunk
)

// Chunks of a run get fewer raw bytes, since a question decodes whole ones: one of signatures of each run, and one of blocks for an answer.
const (
	signatureBytes = 16 << 10
	runChunkBytes  = 64 << 10
)

// rawBytes returns how long the raw bytes of a chunk may be: readers allocate that much
// because the index says so, before any other check.
func (k kind) rawBytes() uint32 {
	switch k {
	case accountChunk:
		return 2*chunkBytes + ledger.MaxDataBytes
	case mintChunk:
		return 1 << 20
	case blockChunk:
		return codec.MaxEventBytes + 2*chunkBytes
	case metaChunk:
		return 16 << 20
	case signatureChunk:
		return 2 * signatureBytes
	case filterChunk:
		return codec.MaxEventBytes/16 + 2*chunkBytes // a key takes 32 bytes of its block, and 11 bits of the filter
	}
	return 0
}

// maxStoredBytes returns how long the frame of so many raw bytes may be: zstd stores what it
// cannot compress, in blocks of 128 KiB with 3 bytes each.
func maxStoredBytes(raw uint32) uint32 { return raw + raw>>12 + 128 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is an entry of the index.
type chunk struct {
	kind               kind
	offset             int64 // follows from the entries before
	stored, raw, count uint32
	checksum           uint32
	first, last        ledger.Pubkey
}

func appendHeader(dst []byte, magic string) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, formatVersion)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// checkHeader returns the format version of a file, and a *FormatError for one of a newer program.
func checkHeader(file, magic string, header []byte) (version uint32, err error) {
	body, sum := header[:headerBytes-4], binary.LittleEndian.Uint32(header[headerBytes-4:])
	version = binary.LittleEndian.Uint32(body[8:])
	switch {
	case crc32.Checksum(body, castagnoli) != sum:
		err = &DamagedError{file, 0, "the checksum of the header is wrong"}
	case string(body[:8]) != magic:
		err = &DamagedError{file, 0, fmt.Sprintf("the header says %q, not %q", body[:8], magic)}
	case version > formatVersion:
		err = &FormatError{File: file, Version: version, Newest: formatVersion}
	case version == 0:
		err = &DamagedError{file, 0, "format version 0 never was"}
	}
	return version, err
}

func appendEntry(dst []byte, c *chunk) []byte {
	dst = append(dst, byte(c.kind))
	for _, v := range []uint32{c.stored, c.raw, c.count, c.checksum} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	dst = append(dst, c.first[:]...)
	return append(dst, c.last[:]...)
}

// decodeEntry is the inverse of appendEntry; the chunk begins at offset.
func decodeEntry(b []byte, offset int64) chunk {
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(b[1+4*i:]) }
	return chunk{
		kind: kind(b[0]), offset: offset,
		stored: number(0), raw: number(1), count: number(2), checksum: number(3),
		first: ledger.Pubkey(b[17:49]), last: ledger.Pubkey(b[49:81]),
	}
}

// check returns why an entry by itself cannot be right, "" if it can.
func (c *chunk) check() string {
	switch {
	case c.kind.rawBytes() == 0:
		return fmt.Sprintf("a chunk is of unknown kind %d", c.kind)
	case c.raw == 0 || c.raw > c.kind.rawBytes():
		return fmt.Sprintf("a chunk says it holds %d bytes", c.raw)
	case c.stored == 0 || c.stored > maxStoredBytes(c.raw):
		return fmt.Sprintf("a chunk of %d bytes says it is stored in %d", c.raw, c.stored)
	case c.count == 0 || c.count > c.raw:
		return fmt.Sprintf("a chunk of %d bytes says it holds %d items", c.raw, c.count)
	case c.last.Compare(&c.first) < 0 || c.count == 1 && c.first != c.last || c.count > 1 && c.first == c.last:
		return "first and last key of a chunk do not fit its count"
	}
	return ""
}

// appendFooter appends what follows the index: header and index are what the hash covers.
func appendFooter(dst, header, index []byte) (footer []byte, hash [sha256.Size]byte) {
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(index)))
	hash = sha256.Sum256(bytes.Join([][]byte{header, index, length}, nil))
	dst = append(dst, length...)
	dst = append(dst, hash[:]...)
	return append(dst, endMagic...), hash
}

// blockKey is the key of a block in the index.
func blockKey(s ledger.Slot) (k ledger.Pubkey) {
	binary.BigEndian.PutUint64(k[:], uint64(s))
	return k
}

// slotOf is the inverse of blockKey.
func slotOf(k *ledger.Pubkey) ledger.Slot { return ledger.Slot(k.Prefix()) }
