package ledger

// BlockID names a block: two blocks may share a slot.
type BlockID struct {
	Slot Slot
	Hash Hash
}

// Block is the content produced at one slot. It is immutable once emitted.
type Block struct {
	Slot              Slot
	ParentSlot        Slot
	Blockhash         Hash
	PreviousBlockhash Opt[Hash]  // the parent's hash
	Time              Opt[int64] // Unix seconds, the ledger's own estimate
	Height            Opt[uint64]

	// Status is the commitment that the source states for the block as it arrives:
	// Finalized for getBlock results, Processed where statuses follow.
	Status Commitment

	// TransactionCount is the count the source states; it may exceed
	// len(Transactions) where the source does not carry them all.
	TransactionCount uint64
	Transactions     []Transaction // in the order of the block

	// Accounts are the account writes in the order they happened; for one
	// key the last wins, field by field.
	Accounts []AccountWrite
	// Mints are mint facts from token balances, apart from any write of the
	// mint's own account.
	Mints []MintWrite
}

// Transaction is one transaction of a block. Slot, Index and Time repeat what the block
// says, so that a transaction can be returned without its block.
type Transaction struct {
	Signature Signature
	Slot      Slot
	Index     uint32 // position in the block
	Time      Opt[int64]
	Fee       Opt[Lamports]
	Success   Opt[bool]
	// Err is the error of a failed transaction: the JSON of a TransactionError as nodes return it, without spaces. It is "" if no
	// source showed it.
	Err string
	// Accounts are the static keys, then loaded writable, then loaded readonly.
	Accounts []Pubkey
}

// MaxErrBytes bounds Transaction.Err. Programs may put texts of any length into the error; a longer error is not kept.
const MaxErrBytes = 1024

// AddTransaction appends t, stamped with the block's slot and time and its own index.
// Slot and Time of the block must be set before.
func (b *Block) AddTransaction(t Transaction) {
	t.Slot, t.Time, t.Index = b.Slot, b.Time, uint32(len(b.Transactions))
	b.Transactions = append(b.Transactions, t)
}

// IsVote reports whether the accounts of the transaction are those of a validator's vote: the vote program, the signers,
// one more account, and the sysvars that a vote reads. Instructions are not stored, so some other transactions
// about a single vote account count as votes too.
func (t *Transaction) IsVote() bool {
	if len(t.Accounts) < 3 || len(t.Accounts) > 6 {
		return false
	}
	calls, others := false, 0
	for i := range t.Accounts {
		switch t.Accounts[i] {
		case VoteProgram:
			calls = i > 0
		case clockSysvar, slotHashesSysvar:
		default:
			others++
		}
	}
	return calls && others <= 3
}

// WithoutVotes returns the block without its vote transactions, or b itself if it has none. The count
// that the source states stays.
func (b *Block) WithoutVotes() *Block {
	less := *b
	less.TransactionCount = max(b.TransactionCount, uint64(len(b.Transactions)))
	less.Transactions = make([]Transaction, 0, len(b.Transactions))
	for i := range b.Transactions {
		if !b.Transactions[i].IsVote() {
			less.AddTransaction(b.Transactions[i])
		}
	}
	if len(less.Transactions) == len(b.Transactions) {
		return b
	}
	return &less
}

// WithoutWrites returns the block without its writes, as it is stored for queries. It shares the
// transactions.
func (b *Block) WithoutWrites() *Block {
	held := *b
	held.Accounts, held.Mints = nil, nil
	return &held
}

// Estimates of what the parts of a block take in memory. While a block may be undone each account write also has its update in the
// record, and a value in an overlay; a write with token facts has them in all three.
const (
	blockBytes, transactionBytes, writeBytes = 256, 192, 224
	updateBytes, valueBytes, tokenBytes      = 192, 256, 344
)

// SizeBytes estimates what the block takes in memory. Retention and the bounds on
// waiting blocks use it.
func (b *Block) SizeBytes() int {
	n := blockBytes + len(b.Transactions)*transactionBytes + (len(b.Accounts)+len(b.Mints))*writeBytes
	for i := range b.Transactions {
		n += len(b.Transactions[i].Accounts)*len(Pubkey{}) + len(b.Transactions[i].Err)
	}
	return n + dataSize(b.Accounts)
}

// dataSize estimates what the data of writes takes in memory. Their updates and values share it.
func dataSize(writes []AccountWrite) (n int) {
	for i := range writes {
		n += writes[i].Data.SizeBytes()
	}
	return n
}

// UnfinalizedBytes estimates what is held of the block while it may be undone.
func (b *Block) UnfinalizedBytes() int {
	n := b.SizeBytes() + len(b.Accounts)*(updateBytes+valueBytes)
	for i := range b.Accounts {
		if b.Accounts[i].Token != nil {
			n += tokenBytes
		}
	}
	return n
}
