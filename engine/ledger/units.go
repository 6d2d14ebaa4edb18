package ledger

import "slices"

// Slot is a position in the ledger. A slot holds one block or, if its leader
// was skipped, none.
type Slot uint64

// MaxSlot is the last slot that a block or base state may have: a Provenance holds one bit besides the slot.
const MaxSlot = Slot(1)<<63 - 1

// Lamports is an amount of the ledger's native token; 10^9 lamports are one SOL.
type Lamports uint64

// Version is the position of a record in the log. Every block and every rollback
// is one, numbers only grow, and each names a slot. Version 0 is before every record.
type Version uint64

// Seq numbers account updates in log order, from 1, without holes. It is the same on
// every replica and after every restart.
type Seq uint64

// Opt is a value that may be unknown.
type Opt[T any] struct {
	Value T
	Known bool
}

// Some returns a known value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Known: true} }

// Commitment is how final a block is. Levels are ordered: a finalized
// block is also confirmed, a confirmed one also processed.
type Commitment uint8

const (
	Processed Commitment = iota // on the chain this node follows, may be undone
	Confirmed                   // voted for by a supermajority
	Finalized                   // never undone

	Commitments = 3 // how many levels there are
)

var commitmentNames = [Commitments]string{"processed", "confirmed", "finalized"}

// String returns the name the interface uses: processed, confirmed or finalized.
func (c Commitment) String() string {
	if c >= Commitments {
		return "unknown"
	}
	return commitmentNames[c]
}

// ParseCommitment is the inverse of String; ok is false for any other text.
func ParseCommitment[T string | []byte](s T) (c Commitment, ok bool) {
	i := slices.Index(commitmentNames[:], string(s))
	return Commitment(max(i, 0)), i >= 0
}
