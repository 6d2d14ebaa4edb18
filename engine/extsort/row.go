package extsort

import (
	"cmp"
	"encoding/binary"
	"errors"

	"ledgerd/engine/ledger"
)

// Row is a value of a key, with the slot and version that rank it among the rows of that key.
type Row struct {
	Key     ledger.Pubkey
	Slot    ledger.Slot
	Version uint64
	Value   []byte // at most maxValueBytes
}

// maxValueBytes bounds the value of a row.
const maxValueBytes = 1 << 12

// maxRowBytes is the size of the largest row: key, slot, version, length of the value, value.
const maxRowBytes = len(ledger.Pubkey{}) + 3*binary.MaxVarintLen64 + maxValueBytes

// appendRow appends a row as a partition holds it.
func appendRow(dst []byte, r *Row) []byte {
	dst = append(dst, r.Key[:]...)
	dst = binary.AppendUvarint(dst, uint64(r.Slot))
	dst = binary.AppendUvarint(dst, r.Version)
	dst = binary.AppendUvarint(dst, uint64(len(r.Value)))
	return append(dst, r.Value...)
}

var errRow = errors.New("not a row: the file was changed on disk")

// decodeRow reads the row at the front of b, whose value stays part of b, and returns its length.
func decodeRow(b []byte, r *Row) (n int, err error) {
	if len(b) < len(r.Key) {
		return 0, errRow
	}
	n = copy(r.Key[:], b)
	var numbers [3]uint64
	for i := range numbers {
		v, size := binary.Uvarint(b[n:])
		if size <= 0 {
			return 0, errRow
		}
		numbers[i] = v
		n += size
	}
	size := numbers[2]
	if size > maxValueBytes || size > uint64(len(b)-n) {
		return 0, errRow
	}
	r.Slot, r.Version, r.Value = ledger.Slot(numbers[0]), numbers[1], b[n:n+int(size)]
	return n + int(size), nil
}

// olderThan reports whether r ranks below o by slot and version.
func (r *Row) olderThan(o *Row) bool {
	return cmp.Or(cmp.Compare(r.Slot, o.Slot), cmp.Compare(r.Version, o.Version)) < 0
}
