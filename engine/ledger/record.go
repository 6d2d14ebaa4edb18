package ledger

import "time"

// RecordKind is what a record in the log says.
type RecordKind uint8

const (
	BlockRecord    RecordKind = iota + 1 // a block was appended to the chain
	RollbackRecord                       // the chain was cut back to an ancestor
	StatusRecord                         // a block on the chain was confirmed or finalized
	BaseRecord                           // accounts were learned without a block
)

// Update is one visible change of an account: the whole account after it, and the owner
// program and the wallet before it where those changed. Updates of a record are in pubkey order.
type Update struct {
	Account     Account     // 0 lamports: closed, or never existed on this chain
	OwnerBefore Opt[Pubkey] // the known owner before, where it differs from the owner after
	// WalletBefore is the wallet of the token account before, where the account is no token account any more or
	// is another wallet's. Records of format version 1 do not tell it.
	WalletBefore Opt[Pubkey]
}

// Record is one entry of the log: what the sequencer decided about one event. It holds all
// that replay, resume and replicas need, so that none of them needs older state.
// It is immutable once appended.
type Record struct {
	Version Version // its position in the log; increasing by one
	Kind    RecordKind

	// Slot and Hash name the block at the chain's tip after the record; for a
	// status the block it is about; for base state the slot it was taken at.
	Slot Slot
	Hash Hash

	Block  *Block     // with BlockRecord
	Base   *BaseState // with BaseRecord
	Status Status     // with StatusRecord
	// ByDepth, of a block that became final: not the source said so, but its depth or the end of the input. Programs
	// that write no format version 3 do not tell it.
	ByDepth bool

	// FromSlot, with RollbackRecord, is the tip before.
	FromSlot Slot
	// Time, with BlockRecord and RollbackRecord, is the time of the block at Slot.
	Time Opt[int64]

	// Updates are numbered FirstSeq, FirstSeq+1, … A record without updates carries
	// the number that the next one will get.
	FirstSeq Seq
	Updates  []Update
	// Unchanged, with RollbackRecord, are the accounts that the undone blocks wrote but
	// that stand at the old tip as they stood at the ancestor. Nobody at processed
	// level is told; a reader of a higher level may have seen them in between.
	Unchanged []Account

	// StateHash is the state hash after the record.
	StateHash StateHash
}

// LastSeq returns the number of the newest update up to and including the record.
func (r *Record) LastSeq() Seq { return r.FirstSeq + Seq(len(r.Updates)) - 1 }

// Publication is what became visible at once: the head after it and the records that
// led there, in log order. A rollback and the blocks that caused it come in one.
type Publication struct {
	Head    *Head
	Records []*Record
	// Came is when the first event that led to this was taken from the source; zero where none
	// did, as in a replay.
	ReceivedAt time.Time
}
