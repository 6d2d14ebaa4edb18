package shard

import (
	"runtime"
	"sync"
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// # Held transactions
//
// Most of what a transaction takes is the keys it names, and most of these are named by many
// others. So a block that is held has its transactions packed: one array of records, one array
// of names, 4 bytes each, and the keys they stand for once for all blocks. The tables point at the
// records; a reader gets a ledger.Transaction that is made of one, and nobody sees the record.
//
// A key is kept for as long as a block names it that anybody can still reach: a table, the
// retention, a snapshot, or a reader that was given the block before retention gave it up. Who
// that is nobody counts: the garbage collector tells when a block is gone.

// Keys are the keys that held transactions name. One serves all shards of a node.
type Keys struct {
	mu  sync.Mutex
	all arena.Keys
}

// NewKeys returns no keys yet.
func NewKeys() *Keys { return new(Keys) }

// HeldBlock is a block on the chain with the slot of the block before it there, which
// in a partial ledger need not be its parent.
type HeldBlock struct {
	Block       *ledger.Block // without its writes, and without its transactions
	Previous    ledger.Slot
	HasPrevious bool // false for the first block ever

	packed packed
}

// packed is the transactions of a block.
type packed struct {
	slot    ledger.Slot
	time    ledger.Opt[int64]
	records []heldTransaction
	names   arena.Chunks[ledger.Pubkey] // as far as these need them
	named   *named                      // nil where there are no transactions
	bytes   int                         // what they are said to take
}

// heldTransaction is one transaction.
type heldTransaction struct {
	signature ledger.Signature
	of        *HeldBlock
	fee       ledger.Lamports
	from      uint32 // where its names begin among the block's; they end where the next one's begin
	place     uint32 // its index in the block, and flags in the lowest bits
}

const (
	heldFee = 1 << iota // the fee is known
	heldOutcome
	heldSuccess

	placeShift = iota
)

// named is what is left of a block when it is gone: which keys it had named.
type named struct {
	keys  *Keys
	names []arena.Ref
	// reads counts those who read the keys. It says nothing: whoever gives the names up looks at
	// it, so that the memory model, too, has all reads before.
	reads atomic.Uint64
}

// Hold returns b as it is held, which shares nothing with it that is large. b is the first
// block: for others Previous and HasPrevious are to be set before any shard is given it.
func (k *Keys) Hold(b *ledger.Block) *HeldBlock {
	header := b.WithoutWrites()
	size := header.SizeBytes()
	header.Transactions = nil
	h := &HeldBlock{Block: header}
	if len(b.Transactions) == 0 {
		return h
	}
	total := 0
	for i := range b.Transactions {
		total += len(b.Transactions[i].Accounts)
	}
	p := &h.packed
	p.bytes = size - header.SizeBytes()
	p.slot, p.time = b.Slot, b.Time
	p.records = make([]heldTransaction, len(b.Transactions))
	p.named = &named{keys: k, names: make([]arena.Ref, 0, total)}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range b.Transactions {
		t := &b.Transactions[i]
		p.records[i] = heldTransaction{
			signature: t.Signature, of: h, fee: t.Fee.Value,
			from: uint32(len(p.named.names)), place: uint32(i)<<placeShift | heldFlags(t),
		}
		p.named.names = k.all.UseAll(t.Accounts, p.named.names)
	}
	p.names = k.all.Names
	runtime.AddCleanup(h, (*named).giveUp, p.named)
	return h
}

func heldFlags(t *ledger.Transaction) (flags uint32) {
	if t.Fee.Known {
		flags |= heldFee
	}
	if t.Success.Known {
		flags |= heldOutcome
	}
	if t.Success.Value {
		flags |= heldSuccess
	}
	return flags
}

// dropAtOnce is how many names are given up before others may use the keys: some ten microseconds.
const dropAtOnce = 512

// giveUp is called when nobody can reach the block any more.
func (n *named) giveUp() {
	n.reads.Load()
	for len(n.names) > 0 {
		some := n.names[:min(len(n.names), dropAtOnce)]
		n.names = n.names[len(some):]
		n.keys.mu.Lock()
		for _, name := range some {
			n.keys.all.Drop(name)
		}
		n.keys.mu.Unlock()
	}
}

// SizeBytes estimates what the block takes in memory, as if it held its keys by itself.
func (h *HeldBlock) SizeBytes() int { return h.Block.SizeBytes() + h.packed.bytes }

// Len returns how many transactions there are.
func (h *HeldBlock) Len() int { return len(h.packed.records) }

// Signatures returns the transactions as far as their signatures go.
func (h *HeldBlock) Signatures() []ledger.Transaction {
	if h.Len() == 0 {
		return nil
	}
	out := make([]ledger.Transaction, h.Len())
	for i := range out {
		out[i].Signature = h.packed.records[i].signature
	}
	return out
}

// Transactions returns those from index first on, before last, of which there are so many.
func (h *HeldBlock) Transactions(first, last int) []ledger.Transaction {
	if first >= last {
		return nil
	}
	out := make([]ledger.Transaction, last-first)
	keys := make([]ledger.Pubkey, 0, h.packed.from(last)-h.packed.from(first))
	for i := range out {
		keys = h.packed.unpack(first+i, &out[i], keys)
	}
	h.packed.named.reads.Add(1)
	runtime.KeepAlive(h) // until here, what its names stand for stays
	return out
}

// Whole returns the block with its transactions.
func (h *HeldBlock) Whole() *ledger.Block {
	if h.Len() == 0 {
		return h.Block
	}
	whole := *h.Block
	whole.Transactions = h.Transactions(0, h.Len())
	return &whole
}

// unpack returns the transaction itself.
func (t *heldTransaction) unpack() *ledger.Transaction {
	i := int(t.place >> placeShift)
	return &t.of.Transactions(i, i+1)[0]
}

// from returns where the names of a transaction begin, or would.
func (p *packed) from(index int) int {
	if index < len(p.records) {
		return int(p.records[index].from)
	}
	return len(p.named.names)
}

// unpack makes t one of the transactions. Its keys go behind those in dst, which is returned.
func (p *packed) unpack(index int, t *ledger.Transaction, dst []ledger.Pubkey) []ledger.Pubkey {
	r := &p.records[index]
	*t = ledger.Transaction{Signature: r.signature, Slot: p.slot, Index: uint32(index), Time: p.time}
	if r.place&heldFee != 0 {
		t.Fee = ledger.Some(r.fee)
	}
	if r.place&heldOutcome != 0 {
		t.Success = ledger.Some(r.place&heldSuccess != 0)
	}
	from := len(dst)
	for _, name := range p.named.names[r.from:p.from(index+1)] {
		if name == 0 {
			dst = append(dst, ledger.Pubkey{})
		} else {
			dst = append(dst, *p.names.At(name))
		}
	}
	if len(dst) > from {
		t.Accounts = dst[from:len(dst):len(dst)]
	}
	return dst
}
