package encode

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"

	"ledgerd/engine/ledger"
)

// AppendTag appends the weak entity tag of a record, which also stands for what is unknown in it.
// It is weak, because all codings of a body share it. Tags are equal on every replica and after
// every restart: half of a SHA-256, which processors compute. Less would not do: whoever owns an
// account chooses bytes of its record both before and after it is emptied, and so may look for two
// records of one tag.
func AppendTag(dst, record []byte, unknown ledger.Fields) []byte {
	sum := sha256.Sum256(record)
	sum[0] ^= byte(unknown)
	dst = append(dst, `W/"`...)
	dst = base64.RawURLEncoding.AppendEncode(dst, sum[:sha256.Size/2])
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
