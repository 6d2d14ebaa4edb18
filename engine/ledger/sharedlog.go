package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// LogPoint is where a node stands in a log: behind a record. The zero value is before the first.
type LogPoint struct {
	Version   Version // of the record
	Slot      Slot    // of the record
	StateHash StateHash
	// Record tells the record from another one of its version: many change no account, and no state hash.
	Record RecordDigest
}

// PointAfter returns the point behind a record.
func PointAfter(r *Record) LogPoint {
	return LogPoint{Version: r.Version, Slot: r.Slot, StateHash: r.StateHash, Record: r.Digest()}
}

// RecordDigest is the SHA-256 of what is the same in a record on all nodes that hold it.
type RecordDigest [sha256.Size]byte

// Digest returns the digest of a record: of its version, kind, slot, block hash, status, the tip before a rollback, the
// number of its first update, how many there are, and the state hash. What its updates say is in that; since when a node holds
// an account, and who taught it, nodes need not agree on.
func (r *Record) Digest() RecordDigest {
	b := make([]byte, 0, 128)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Version))
	b = append(b, byte(r.Kind), byte(r.Status))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Slot))
	b = append(b, r.Hash[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.FromSlot))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.FirstSeq))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(r.Updates)))
	for _, w := range r.StateHash {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return sha256.Sum256(b)
}

// ErrDeposed says that another node became the writer of the log.
var ErrDeposed = errors.New("another node became the writer of the log")
