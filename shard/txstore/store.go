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

	mu     sync.RWMutex
	seed   maphash.Seed
	newest map[uint64]*record   // by the hash of the signature: the one that was added last
	others map[uint64][]*record // the other ones with that hash: of blocks on other branches
}

// keys are shared by all blocks. The cleanup of a block refers to them and not to the store: the store refers to
// blocks, and a cleanup that refers to its own block would keep it reachable.
type keys struct {
	mu sync.Mutex
	arena.Keys
}

// New returns an empty store.
func New() *Store {
	return &Store{keys: new(keys), seed: maphash.MakeSeed(), newest: make(map[uint64]*record), others: make(map[uint64][]*record)}
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
		p.named.keys = s.keys.UseAll(t.Accounts, p.named.keys)
	}
	p.keys = s.keys.Names
	runtime.AddCleanup(p, (*named).drop, p.named)
	return p
}

func (s *Store) hash(sig *ledger.Signature) uint64 { return maphash.Bytes(s.seed, sig[:]) }

// Add makes the transactions of a block findable.
func (s *Store) Add(b *Block) {
	for some := range slices.Chunk(b.records, lockedAtOnce) {
		s.mu.Lock()
		for i := range some {
			h := s.hash(&some[i].signature)
			if other := s.newest[h]; other != nil {
				s.others[h] = append(s.others[h], other)
			}
			s.newest[h] = &some[i]
		}
		s.mu.Unlock()
	}
}

// Remove undoes Add for blocks.
func (s *Store) Remove(blocks []*Block) {
	for _, b := range blocks {
		for some := range slices.Chunk(b.records, lockedAtOnce) {
			s.mu.Lock()
			for i := range some {
				s.removeLocked(&some[i])
			}
			s.mu.Unlock()
		}
	}
}

func (s *Store) removeLocked(r *record) {
	h := s.hash(&r.signature)
	others := s.others[h]
	switch last := len(others) - 1; {
	case s.newest[h] != r:
		others = slices.DeleteFunc(others, func(o *record) bool { return o == r })
	case last < 0:
		delete(s.newest, h)
		return
	default:
		s.newest[h] = others[last]
		others = slices.Delete(others, last, last+1)
	}
	if s.others[h] = others; len(others) == 0 {
		delete(s.others, h)
	}
}

// Transaction returns the transaction with the signature in a block for which onChain is true, nil if there is none. Of
// several it returns the one of the newest slot. onChain is called with the store locked.
func (s *Store) Transaction(sig *ledger.Signature, onChain func(*Block) bool) *ledger.Transaction {
	r := s.find(sig, onChain)
	if r == nil {
		return nil
	}
	i := r.indexInBlock()
	return &r.block.Transactions(i, i+1)[0]
}

func (s *Store) find(sig *ledger.Signature, onChain func(*Block) bool) (found *record) {
	h := s.hash(sig)
	s.mu.RLock()
	defer s.mu.RUnlock()
	consider := func(r *record) {
		if r.signature == *sig && onChain(r.block) && (found == nil || r.after(found)) {
			found = r
		}
	}
	if r := s.newest[h]; r != nil {
		consider(r)
	}
	for _, r := range s.others[h] {
		consider(r)
	}
	return found
}

// Len returns how many transactions can be found.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := len(s.newest)
	for _, others := range s.others {
		n += len(others)
	}
	return n
}
