package ledger

import (
	"slices"
	"time"
)

// Tip is the newest point of one commitment level.
type Tip struct {
	// Version is the record that put the block on the chain, or a newer one: at the confirmed level the rollback that
	// undid a confirmed block, at the processed level the newest record of all, be it a rollback, base state or a
	// status. So every publication that has a record has a processed version of its own, by which it is found in the log.
	Version Version
	Slot    Slot
	Hash    Hash
	Seq     Seq // the newest update at or below the version
	Time    Opt[int64]
}

// Head is what is visible after one publication. It is immutable: one answer is
// computed from one head, and so from one block.
type Head struct {
	Tips [Commitments]Tip // by Commitment
	// Since says when the block of each tip first became visible here at any level: a status alone does not change it. The board
	// that publishes the head fills it in.
	Since [Commitments]time.Time

	HasBlock bool // false until the first block: then the tips name base state only
	// Imported is true while there is no block yet and the tips name the slot of an imported archive: the
	// state is that of the ledger at that slot, without what a filter leaves out.
	Imported bool
	Root     Slot // the first block ever held
	Floor    Slot // blocks below it are pruned; never below Root
	Horizon  Slot // an account closed below it is answered like one that was never held

	// Gaps are the slots of the blocks from Floor on in front of which blocks of the chain are missing, oldest first: the source did not show
	// them, or the files that had them were damaged.
	Gaps []Slot

	// Chain holds the blocks for queries. Only the engine that published the head reads it. A head of
	// a replay has none and answers no query for a block.
	Chain Chain

	StateHash  StateHash // at Tips[Processed]
	FinalState StateHash // at Tips[Finalized]
	Published  time.Time // carries a monotonic reading
}

// Chain is the blocks of a head. The engine knows its concrete type.
type Chain interface {
	// FirstFrom returns how many blocks are below a slot.
	FirstFrom(Slot) int
}

// Tip returns the tip of a level.
func (h *Head) Tip(c Commitment) *Tip { return &h.Tips[c] }

// WholeFrom returns the lowest slot from which on memory has every block of the chain up to slot upTo. gap is true if a gap in
// the chain lies below it, and false if the retention floor does.
func (h *Head) WholeFrom(upTo Slot) (from Slot, gap bool) {
	for _, slot := range slices.Backward(h.Gaps) {
		if slot <= upTo {
			return slot, true
		}
	}
	return h.Floor, false
}

// HasSlot reports whether the tips name slots of the ledger: of blocks or of an import.
func (h *Head) HasSlot() bool { return h.HasBlock || h.Imported }

// CommitmentOf returns the level that a block at slot on the chain has reached.
func (h *Head) CommitmentOf(slot Slot) Commitment {
	switch {
	case slot <= h.Tips[Finalized].Slot:
		return Finalized
	case slot <= h.Tips[Confirmed].Slot:
		return Confirmed
	}
	return Processed
}
