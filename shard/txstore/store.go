package txstore

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// lockedAtOnce is how many transactions or keys are handled under one lock: some ten microseconds.
const lockedAtOnce = 512

// Store has the transactions of a node.
type Store struct {
	keys *keys // account keys of all transactions

	mu      sync.RWMutex
	seed    maphash.Seed
	records map[uint64]*record // by the hash of the signature: the one that was added last
	count   int                // of all records
}

// keys are shared by all blocks. The cleanup of a block refers to them and not to the store: the store refers to
// blocks, and a cleanup that refers to its own block would keep it reachable.
type keys struct {
	mu sync.Mutex
	arena.Keys
}

// New returns an empty store.
func New() *Store {
	return &Store{keys: new(keys), seed: maphash.MakeSeed(), records: make(map[uint64]*record)}
}

// Pack returns b packed; the result shares nothing large with b. Transaction finds its transactions only after Add.
func (s *Store) Pack(b *ledger.Block) *Block {
	header := b.WithoutWrites()
	size := header.SizeBytes()
	header.Transactions = nil
	p := &Block{Block: header}
	if len(b.Transactions) == 0 {
		return p
	}
	total := 0
	for i := range b.Transactions {
		total += len(b.Transactions[i].Accounts)
	}
	p.packedBytes = size - header.SizeBytes()
	p.records = make([]record, len(b.Transactions))
	p.named = &named{of: s.keys, keys: make([]arena.Ref, 0, total)}
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	for i := range b.Transactions {
		t := &b.Transactions[i]
		p.records[i] = record{
			signature: t.Signature, block: p, fee: t.Fee.Value,
			keysFrom: uint32(len(p.named.keys)), index: uint32(i)<<indexShift | flagsOf(t),
		}
		for j := range t.Accounts {
			p.named.keys = append(p.named.keys, s.keys.Use(&t.Accounts[j]))
		}
	}
	p.keys = s.keys.Names.Chunks
	runtime.AddCleanup(p, (*named).drop, p.named)
	return p
}

func (s *Store) hash(sig *ledger.Signature) uint64 { return maphash.Bytes(s.seed, sig[:]) }

// Add makes the transactions of a block findable.
func (s *Store) Add(b *Block) {
	s.eachLocked(b, func(at *record, h uint64) {
		at.next = s.records[h]
		s.records[h] = at
		s.count++
	})
}

// Remove undoes Add for blocks.
func (s *Store) Remove(blocks []*Block) {
	for _, b := range blocks {
		s.eachLocked(b, s.removeLocked)
	}
}

// eachLocked calls do for the records of a block and the hashes of their signatures.
func (s *Store) eachLocked(b *Block, do func(r *record, h uint64)) {
	for some := range slices.Chunk(b.records, lockedAtOnce) {
		s.mu.Lock()
		for i := range some {
			do(&some[i], s.hash(&some[i].signature))
		}
		s.mu.Unlock()
	}
}

func (s *Store) removeLocked(r *record, h uint64) {
	s.count--
	before := s.records[h]
	if before != r {
		for before.next != r {
			before = before.next
		}
		before.next = r.next
	} else if r.next != nil {
		s.records[h] = r.next
	} else {
		delete(s.records, h)
	}
	r.next = nil // it would keep the block of the next one reachable
}

// Transaction returns the transaction with the signature in a block for which onChain is true, nil if there is none. Of
// several it returns the one of the newest slot. onChain is called with the store locked.
func (s *Store) Transaction(sig *ledger.Signature, onChain func(*Block) bool) *ledger.Transaction {
	var found *record
	h := s.hash(sig)
	s.mu.RLock()
	for r := s.records[h]; r != nil; r = r.next {
		if r.signature == *sig && onChain(r.block) && (found == nil || r.after(found)) {
			found = r
		}
	}
	s.mu.RUnlock()
	if found == nil {
		return nil
	}
	i := found.indexInBlock()
	return &found.block.Transactions(i, i+1)[0]
}

// Len returns how many transactions can be found.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}
