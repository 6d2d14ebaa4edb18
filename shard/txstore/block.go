package txstore

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"
	"unique"
	"unsafe"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bloom"
	"ledgerd/shard/arena"
)

// Block is a block of the ledger without its writes and with its transactions packed.
type Block struct {
	Block *ledger.Block // without writes and transactions

	records       []record
	keys          arena.Chunks[arena.Key] // the store's keys when the block was packed
	named         *named                  // nil without transactions
	filter        bloom.Filter            // of the keys that are named
	errs          []errAt                 // of the transactions whose error is known, by index
	number        uint32                  // in the store; Store.mu guards it
	unpackedBytes int                     // an estimate of the size of the unpacked transactions
}

// errAt is the error of the transaction with an index. Many transactions fail with the same few texts, so each text is stored
// once.
type errAt struct {
	index uint32
	text  unique.Handle[string]
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

// named are the numbers of the keys of a block's transactions. It outlives the block, so that it can drop the keys.
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

// outcome returns whether the transaction succeeded.
func (r *record) outcome() ledger.Opt[bool] {
	return ledger.Opt[bool]{Value: r.flags&flagSuccess != 0, Known: r.flags&flagOutcome != 0}
}

// SizeBytes estimates the size of the block in memory as if its transactions were not packed.
func (b *Block) SizeBytes() int { return b.Block.SizeBytes() + b.unpackedBytes }

// packedBytes estimates the size of the packed block in memory, without what it shares with others.
func (b *Block) packedBytes() int {
	bytes := b.Block.SizeBytes() + len(b.records)*int(unsafe.Sizeof(record{})) + len(b.filter)*int(unsafe.Sizeof(b.filter[0])) + len(b.errs)*int(unsafe.Sizeof(errAt{}))
	if b.named != nil {
		bytes += len(b.named.keys) * int(unsafe.Sizeof(b.named.keys[0]))
	}
	return bytes
}

// Len returns how many transactions there are.
func (b *Block) Len() int { return len(b.records) }

// Signature returns the signature of the transaction with an index.
func (b *Block) Signature(index int) ledger.Signature { return b.records[index].signature }

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
	indexes := make([]int, max(0, last-first))
	for i := range indexes {
		indexes[i] = first + i
	}
	return b.Pick(indexes)
}

// Wanted says which transactions are looked for.
type Wanted struct {
	// Key selects the transactions that name a key: it is the number that Store.Key returned after the block was packed. 0
	// selects all.
	Key     arena.Ref
	Success ledger.Opt[bool] // selects those with this outcome; unknown selects all
}

// MayHave reports whether the block may have transactions that are wanted. Finding that it has none costs one read of memory.
func (b *Block) MayHave(w Wanted) bool { return w.Key == 0 || b.filter.Has(uint64(w.Key)) }

// Has reports whether the transaction with an index is wanted.
func (b *Block) Has(w Wanted, index int) bool {
	if w.Success.Known && b.records[index].outcome() != w.Success {
		return false
	}
	return w.Key == 0 || slices.Contains(b.named.keys[b.keysFrom(index):b.keysFrom(index+1)], w.Key)
}

// Keys returns how many keys the transaction with an index names.
func (b *Block) Keys(index int) int { return b.keysFrom(index+1) - b.keysFrom(index) }

// Pick returns the transactions with some indexes.
func (b *Block) Pick(indexes []int) []ledger.Transaction {
	if len(indexes) == 0 {
		return nil
	}
	total := 0
	for _, index := range indexes {
		total += b.Keys(index)
	}
	out := make([]ledger.Transaction, len(indexes))
	keys := make([]ledger.Pubkey, 0, total)
	for i, index := range indexes {
		keys = b.unpack(index, &out[i], keys)
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
	t.Success = r.outcome()
	if at, found := slices.BinarySearchFunc(b.errs, uint32(index), func(e errAt, i uint32) int { return cmp.Compare(e.index, i) }); found {
		t.Err = b.errs[at].text.Value()
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
