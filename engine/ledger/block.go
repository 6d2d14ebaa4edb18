package ledger

// Block is the content produced at one slot. It is immutable once emitted.
type Block struct {
	Slot              Slot
	ParentSlot        Slot
	Blockhash         Hash
	PreviousBlockhash Opt[Hash]  // the parent's hash
	Time              Opt[int64] // Unix seconds, the ledger's own estimate
	Height            Opt[uint64]

	// Status is the commitment the source claims for the block as it arrives:
	// Finalized for getBlock results, Processed where statuses follow.
	Status Commitment

	// TransactionCount is the count the source states; it may exceed
	// len(Transactions) where the source does not carry them all.
	TransactionCount uint64
	Transactions     []Transaction // in the order of the block

	// Accounts are the account writes in the order they happened; for one
	// key the last wins, field by field.
	Accounts []AccountWrite
	// Mints are mint facts learned from token balances, apart from any write of the
	// mint's own account.
	Mints []MintWrite
}

// Transaction is one transaction of a block. Slot, Index and Time repeat what the block
// says, so that a transaction can be answered without it.
type Transaction struct {
	Signature Signature
	Slot      Slot
	Index     uint32 // position in the block
	Time      Opt[int64]
	Fee       Opt[Lamports]
	Success   Opt[bool]
	// Accounts are the static keys, then loaded writable, then loaded readonly.
	Accounts []Pubkey
}

// AddTransaction appends t, stamped with the block's slot and time and its own index.
// Slot and Time of the block must be set before.
func (b *Block) AddTransaction(t Transaction) {
	t.Slot, t.Time, t.Index = b.Slot, b.Time, uint32(len(b.Transactions))
	b.Transactions = append(b.Transactions, t)
}

// WithoutWrites returns the block as it is held for readers: the writes are gone, the
// transactions are shared.
func (b *Block) WithoutWrites() *Block {
	held := *b
	held.Accounts, held.Mints = nil, nil
	return &held
}

// What the parts of a block take in memory, about.
const blockBytes, transactionBytes, writeBytes = 256, 192, 224

// SizeBytes estimates what the block holds in memory; retention and the bounds on
// waiting blocks count it.
func (b *Block) SizeBytes() int {
	n := blockBytes + len(b.Transactions)*transactionBytes + (len(b.Accounts)+len(b.Mints))*writeBytes
	for i := range b.Transactions {
		n += len(b.Transactions[i].Accounts) * len(Pubkey{})
	}
	return n
}
