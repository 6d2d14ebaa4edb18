package ledger

import "time"

// RecordKind is the kind of a record in the log.
type RecordKind uint8

const (
	BlockRecord    RecordKind = iota + 1 // a block was appended to the chain
	RollbackRecord                       // the chain was cut back to an ancestor
	StatusRecord                         // a block on the chain was confirmed or finalized
	BaseRecord                           // accounts came without a block
)

// Update is one visible change of an account: the whole account after it, and the owner
// program and the wallet before it where those changed. Updates of a record are in pubkey order.
type Update struct {
	Account     Account     // 0 lamports: closed, or never existed on this chain
	OwnerBefore Opt[Pubkey] // the known owner before, where it differs from the owner after
	// WalletBefore is the wallet of the token account before, where the account is no longer a token account or
	// now belongs to another wallet. Records of format version 1 lack it.
	WalletBefore Opt[Pubkey]
	// DataBefore is the known data before, where the data after is another or not known.
	DataBefore Opt[Data]
	// Written, unless it is 0, says that write number Written-1 of the record's block alone determines Account (see
	// Account.IsAsWritten): the record is then encoded without the account.
	Written uint32
}

// Record is one entry of the log: what the sequencer decided about one event. It holds all
// that replay, resume and replicas need, so they never read older state.
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
	// ByDepth, with StatusFinalized: the block became final by its depth or by the end of the input, not by
	// a status of the source. Records of format versions 1 and 2 lack it.
	ByDepth bool

	// FromSlot, with RollbackRecord, is the tip before.
	FromSlot Slot
	// Time, with BlockRecord and RollbackRecord, is the time of the block at Slot.
	Time Opt[int64]

	// Updates are numbered FirstSeq, FirstSeq+1, … A record without updates carries
	// the number that the next one will get.
	FirstSeq Seq
	Updates  []Update
	// Unchanged, with RollbackRecord, are the accounts that the undone blocks wrote, or blocks that were undone before on the
	// same ancestor, but whose state at the old tip equals that at the ancestor. Subscribers at processed level
	// get no update of them; readers of a higher level may have seen them change in between.
	Unchanged []Account

	// Horizon is the slot below which the record sees no closing: it treats an account that was closed below it like one that
	// was never held, whether its tombstone is still stored or not. It never falls from one record to the next, and rises with the
	// status that makes a block final. Records before format version 4 lack it.
	Horizon Opt[Slot]

	// StateHash is the state hash after the record.
	StateHash StateHash
}

// LastSeq returns the number of the newest update up to and including the record.
func (r *Record) LastSeq() Seq { return r.FirstSeq + Seq(len(r.Updates)) - 1 }

// Publication is what becomes visible at once: the new head and the records that
// led to it, in log order. A rollback and the blocks that caused it are in one publication.
type Publication struct {
	Head    *Head
	Records []*Record
	// ReceivedAt is when the first event of the publication was taken from the source; zero without
	// an event, as in a replay.
	ReceivedAt time.Time
}
