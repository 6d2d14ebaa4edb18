package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// LogPoint is a position in a log: the one after a record. The zero value is before the first record.
type LogPoint struct {
	Version   Version // of the record
	Slot      Slot    // of the record
	StateHash StateHash
	// Record distinguishes the record from others of the same version. The state hash does not: many records change no account.
	Record RecordDigest
}

// PointAfter returns the point after a record.
func PointAfter(r *Record) LogPoint {
	return LogPoint{Version: r.Version, Slot: r.Slot, StateHash: r.StateHash, Record: r.Digest()}
}

// RecordDigest is the SHA-256 of the parts of a record that are the same on all nodes.
type RecordDigest [sha256.Size]byte

// Digest returns the digest of a record's version, kind, slot, block hash, status, tip before a rollback, number of the
// first update, count of updates, and state hash. The state hash covers the updated accounts, without
// their provenance, which may differ between nodes.
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

// ErrDeposed says that this node was the writer of the shared log, and that another one is, or may become it.
var ErrDeposed = errors.New("this node is not the writer of the shared log any more")

// ErrPurged says that the shared log begins after what a node needs next: it must begin with a newer snapshot.
var ErrPurged = errors.New("the stream was purged past what this node needs next")
