package txstore

import (
	"runtime"
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Block is a block of the ledger without its writes and with its transactions packed.
type Block struct {
	Block *ledger.Block // without its transactions too

	records     []record
	keys        arena.Chunks[ledger.Pubkey] // as far as these records need them
	named       *named                      // nil without transactions
	packedBytes int                         // the estimate for transactions that are not packed
}

// record is one transaction.
type record struct {
	signature ledger.Signature
	block     *Block
	fee       ledger.Lamports
	keysFrom  uint32 // where its keys begin among those of the block; they end where the next one's begin
	index     uint32 // in the block, from indexShift on, and flags below
}

const (
	flagFee     = 1 << iota // the fee is known
	flagOutcome             // it is known whether the transaction succeeded
	flagSuccess

	indexShift = iota
)

// named is what is left of a block when it is gone: the numbers of the keys that its transactions name.
type named struct {
	of   *keys
	keys []arena.Ref
	// reads is written by readers after they read the keys and read before these are dropped: runtime.KeepAlive
	// alone does not order the two in the memory model.
	reads atomic.Uint64
}

// drop is called by the runtime when nobody can reach the block any more.
func (n *named) drop() {
	n.reads.Load()
	for len(n.keys) > 0 {
		some := n.keys[:min(len(n.keys), lockedAtOnce)]
		n.keys = n.keys[len(some):]
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

// place returns the index in the block.
func (r *record) place() int { return int(r.index >> indexShift) }

// after reports whether a transaction comes after another in the ledger.
func (r *record) after(other *record) bool {
	if r.block != other.block {
		return r.block.Block.Slot > other.block.Block.Slot
	}
	return r.index > other.index
}

// SizeBytes estimates what the block takes in memory, as if its transactions were not packed.
func (b *Block) SizeBytes() int { return b.Block.SizeBytes() + b.packedBytes }

// Len returns how many transactions there are.
func (b *Block) Len() int { return len(b.records) }

// Signatures returns the transactions with nothing but their signatures.
func (b *Block) Signatures() []ledger.Transaction {
	if b.Len() == 0 {
		return nil
	}
	out := make([]ledger.Transaction, b.Len())
	for i := range out {
		out[i].Signature = b.records[i].signature
	}
	return out
}

// Transactions returns those from index first on, before last.
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
	runtime.KeepAlive(b) // the keys must not be dropped before
	return out
}

// Whole returns the block with its transactions.
func (b *Block) Whole() *ledger.Block {
	if b.Len() == 0 {
		return b.Block
	}
	whole := *b.Block
	whole.Transactions = b.Transactions(0, b.Len())
	return &whole
}

// keysFrom returns where the keys of a transaction begin; an index past the last is where all end.
func (b *Block) keysFrom(index int) int {
	if index < len(b.records) {
		return int(b.records[index].keysFrom)
	}
	return len(b.named.keys)
}

// unpack makes t one of the transactions. It appends its keys to dst and returns that.
func (b *Block) unpack(index int, t *ledger.Transaction, dst []ledger.Pubkey) []ledger.Pubkey {
	r := &b.records[index]
	*t = ledger.Transaction{Signature: r.signature, Slot: b.Block.Slot, Index: uint32(index), Time: b.Block.Time}
	if r.index&flagFee != 0 {
		t.Fee = ledger.Some(r.fee)
	}
	if r.index&flagOutcome != 0 {
		t.Success = ledger.Some(r.index&flagSuccess != 0)
	}
	from := len(dst)
	for _, key := range b.named.keys[r.keysFrom:b.keysFrom(index+1)] {
		if key == 0 {
			dst = append(dst, ledger.Pubkey{})
		} else {
			dst = append(dst, *b.keys.At(key))
		}
	}
	if len(dst) > from {
		t.Accounts = dst[from:len(dst):len(dst)]
	}
	return dst
}
