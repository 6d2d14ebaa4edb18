package encode

import (
	"bytes"
	"hash/crc32"

	"ledgerd/engine/ledger"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendTag appends the weak entity tag of a record, which also stands for what is unknown in it.
// It is weak, because all codings of a body share it. Tags are equal on every replica and after
// every restart: two checksums of 32 bits, which processors compute. That is enough: nobody gains
// by forging a tag, and records that differ within 64 bits only never share one, as the two
// polynomials have no factor in common.
func AppendTag(dst, record []byte, unknown ledger.Fields) []byte {
	const hex = "0123456789abcdef"
	tag := uint64(crc32.Update(uint32(unknown), castagnoli, record))<<32 |
		uint64(crc32.Update(uint32(unknown), crc32.IEEETable, record))
	dst = append(dst, `W/"`...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hex[tag>>shift&0xf])
	}
	return append(dst, '"')
}

// MatchesTag reports whether a line of If-None-Match names the tag, by the weak comparison, or is
// a star.
func MatchesTag(line, tag []byte) bool {
	opaque := bytes.TrimPrefix(tag, []byte("W/"))
	for element := range bytes.SplitSeq(line, []byte{','}) {
		element = bytes.Trim(element, " \t")
		if string(element) == "*" || bytes.Equal(bytes.TrimPrefix(element, []byte("W/")), opaque) {
			return true
		}
	}
	return false
}
