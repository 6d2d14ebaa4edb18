package ledger

// BlockID names a block: two blocks may share a slot.
type BlockID struct {
	Slot Slot
	Hash Hash
}
