package txstore

import (
	"runtime"
	"slices"
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Block is a block of the ledger without its writes and with its transactions packed.
type Block struct {
	Block *ledger.Block // without writes and transactions

	records     []record
	keys        arena.Chunks[arena.Key] // the store's keys when the block was packed
	named       *named                  // nil without transactions
	number      uint32                  // in the store; Store.mu guards it
	packedBytes int                     // an estimate of the size of the unpacked transactions
}

// record is one transaction.
type record struct {
	signature ledger.Signature
	next      recordRef // the next one with the same hash of the signature; Store.mu guards it
	fee       ledger.Lamports
	keysFrom  uint32 // index of its first key in named.keys; its keys end where those of the next record begin
	flags     uint32
}

const (
	flagFee     = 1 << iota // the fee is known
	flagOutcome             // it is known whether the transaction succeeded
	flagSuccess
)

// named are the numbers of the keys of a block's transactions. It outlives the block, to drop them.
type named struct {
	of   *keys
	keys []arena.Ref
	// reads is written by readers after they read the keys, and read before the keys are dropped: runtime.KeepAlive
	// alone does not order the two in the memory model.
	reads atomic.Uint64
}

// drop drops the keys. It is the cleanup of the block: the runtime calls it when the block is unreachable.
func (n *named) drop() {
	n.reads.Load()
	for some := range slices.Chunk(n.keys, lockedAtOnce) {
		n.of.mu.Lock()
		for _, key := range some {
			n.of.Drop(key)
		}
		n.of.mu.Unlock()
	}
}

func flagsOf(t *ledger.Transaction) (flags uint32) {
	if t.Fee.Known {
		flags |= flagFee
	}
	if t.Success.Known {
		flags |= flagOutcome
	}
	if t.Success.Value {
		flags |= flagSuccess
	}
	return flags
}

// SizeBytes estimates the size of the block in memory as if its transactions were not packed.
func (b *Block) SizeBytes() int { return b.Block.SizeBytes() + b.packedBytes }

// Len returns how many transactions there are.
func (b *Block) Len() int { return len(b.records) }

// Signatures returns the transactions with only their signatures set.
func (b *Block) Signatures() []ledger.Transaction {
	out := make([]ledger.Transaction, b.Len())
	for i := range out {
		out[i].Signature = b.records[i].signature
	}
	return out
}

// Transactions returns the transactions with indexes from first up to but not including last.
func (b *Block) Transactions(first, last int) []ledger.Transaction {
	if first >= last {
		return nil
	}
	out := make([]ledger.Transaction, last-first)
	keys := make([]ledger.Pubkey, 0, b.keysFrom(last)-b.keysFrom(first))
	for i := range out {
		keys = b.unpack(first+i, &out[i], keys)
	}
	b.named.reads.Add(1)
	runtime.KeepAlive(b) // its cleanup would drop the keys
	return out
}

// Whole returns the block with its transactions.
func (b *Block) Whole() *ledger.Block {
	whole := *b.Block
	whole.Transactions = b.Transactions(0, b.Len())
	return &whole
}

// keysFrom returns where the keys of a transaction begin in named.keys; for an index past the last, where all end.
func (b *Block) keysFrom(index int) int {
	if index < len(b.records) {
		return int(b.records[index].keysFrom)
	}
	return len(b.named.keys)
}

// unpack sets t to the transaction with an index. It appends the keys to dst, from which t's are a slice, and returns dst.
func (b *Block) unpack(index int, t *ledger.Transaction, dst []ledger.Pubkey) []ledger.Pubkey {
	r := &b.records[index]
	*t = ledger.Transaction{Signature: r.signature, Slot: b.Block.Slot, Index: uint32(index), Time: b.Block.Time}
	if r.flags&flagFee != 0 {
		t.Fee = ledger.Some(r.fee)
	}
	if r.flags&flagOutcome != 0 {
		t.Success = ledger.Some(r.flags&flagSuccess != 0)
	}
	from := len(dst)
	for _, key := range b.named.keys[r.keysFrom:b.keysFrom(index+1)] {
		dst = append(dst, b.keys.At(key).Pubkey)
	}
	if len(dst) > from {
		t.Accounts = dst[from:len(dst):len(dst)]
	}
	return dst
}
