package ledger

// Event is what a source emits: *Block, *BaseState or *SlotStatus, and a *Question of a stream.
type Event interface {
	event()
	SizeBytes() int // estimates what the event takes in memory
}

func (*Block) event()      {}
func (*BaseState) event()  {}
func (*SlotStatus) event() {}
func (*Question) event()   {}

// BaseState is a set of accounts as they stood at a slot, without a block: a snapshot
// to start from, or accounts fetched later. It never overrides a field that a block
// wrote at or after its slot.
type BaseState struct {
	Slot Slot
	// Level, if it is known, is Processed or Confirmed: the highest level whose newest block the base state belongs to. An
	// export states it. If it is not known, the base state belongs to the finalized block if nothing is unfinalized, and
	// otherwise to no block.
	Level Opt[Commitment]
	// After, for base state that was fetched from a live node, is the slot that the newest confirmed block must reach before the
	// base state is applied. It is not stored with the base state.
	After    Slot
	Accounts []AccountWrite
	Mints    []MintWrite
}

// SizeBytes estimates what the base state takes in memory.
func (b *BaseState) SizeBytes() int {
	return blockBytes + (len(b.Accounts)+len(b.Mints))*writeBytes + dataSize(b.Accounts)
}

// SizeBytes is that of any status.
func (*SlotStatus) SizeBytes() int { return 64 }

// SizeBytes is that of any question.
func (*Question) SizeBytes() int { return 64 }

// Status is what a source reports of a slot after its block.
type Status uint8

const (
	StatusConfirmed Status = iota + 1
	StatusFinalized
	StatusDead // the block is abandoned, with all its children
)

var statusNames = [...]string{"unknown", "confirmed", "finalized", "dead"}

// String returns confirmed, finalized or dead.
func (s Status) String() string {
	if s > StatusDead {
		s = 0
	}
	return statusNames[s]
}

// SlotStatus is a status of a slot. Blockhash, where the source knows it, tells which block of
// the slot is meant.
type SlotStatus struct {
	Slot      Slot
	Status    Status
	Blockhash Opt[Hash]
}
