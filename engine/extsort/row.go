package extsort

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"

	"ledgerd/engine/ledger"
)

// Row is a value of a key, with the slot and version that rank it among the rows of that key.
type Row struct {
	Key     ledger.Pubkey
	Slot    ledger.Slot
	Version uint64
	Value   []byte // at most 4 GiB - 1
}

// headerBytes is the size of a row in a file before its value.
const headerBytes = len(ledger.Pubkey{}) + 8 + 8 + 4

// appendRow appends a row as a spool has it: key, slot u64, version u64, size of the value u32, value. Integers are
// big-endian.
func appendRow(dst []byte, r *Row) []byte {
	dst = append(dst, r.Key[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Slot))
	dst = binary.BigEndian.AppendUint64(dst, r.Version)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Value)))
	return append(dst, r.Value...)
}

// read reads the next row. It reuses the memory of Value.
func (r *Row) read(in *bufio.Reader) error {
	header, err := in.Peek(headerBytes)
	if err != nil {
		return err
	}
	n := copy(r.Key[:], header)
	r.Slot = ledger.Slot(binary.BigEndian.Uint64(header[n:]))
	r.Version = binary.BigEndian.Uint64(header[n+8:])
	size := int(binary.BigEndian.Uint32(header[n+16:]))
	in.Discard(headerBytes) // cannot fail: these bytes were peeked
	r.Value = slices.Grow(r.Value[:0], size)[:size]
	_, err = io.ReadFull(in, r.Value)
	return err
}
