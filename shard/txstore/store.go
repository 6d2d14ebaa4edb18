package txstore

import (
	"hash/maphash"
	"runtime"
	"sync"
	"unique"
	"unsafe"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bloom"
	"ledgerd/shard/arena"
)

// lockedAtOnce is how many transactions or keys are handled under one lock: some ten microseconds.
const lockedAtOnce = 512

// Store has the transactions of a node.
type Store struct {
	keys *keys // account keys of all transactions

	mu      sync.RWMutex
	seed    maphash.Seed
	records map[uint64]recordRef // by the hash of the signature: the one that was added last
	blocks  []*Block             // by number; nil where the number is free
	free    []uint32             // numbers of blocks that were removed
	count   int                  // of all records
	bytes   int                  // of all blocks
}

// recordRef is the number of a block and the index of a record in it; 0 means none. It is no pointer, so the garbage collector does
// not scan millions of records.
type recordRef uint64

func (b *Block) ref(index int) recordRef { return recordRef(b.number)<<32 | recordRef(index) }

// find returns the block and the record of a reference.
func (s *Store) find(ref recordRef) (*Block, *record) {
	b := s.blocks[ref>>32]
	return b, &b.records[uint32(ref)]
}

// keys are shared by all blocks. The cleanup of a block refers to them and not to the store: the store refers to
// blocks, and a cleanup that refers to its own block would keep it reachable.
type keys struct {
	mu sync.Mutex
	arena.Keys
}

// New returns an empty store.
func New() *Store {
	return &Store{keys: new(keys), seed: maphash.MakeSeed(), records: make(map[uint64]recordRef), blocks: make([]*Block, 1)}
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
	p.unpackedBytes = size - header.SizeBytes()
	p.records = make([]record, len(b.Transactions))
	p.named = &named{of: s.keys, keys: make([]arena.Ref, 0, total)}
	for i := range b.Transactions {
		if text := b.Transactions[i].Err; text != "" {
			p.errs = append(p.errs, errAt{uint32(i), unique.Make(text)})
		}
	}
	s.keys.mu.Lock()
	for i := range b.Transactions {
		t := &b.Transactions[i]
		p.records[i] = record{
			signature: t.Signature, fee: t.Fee.Value,
			keysFrom: uint32(len(p.named.keys)), flags: flagsOf(t),
		}
		for j := range t.Accounts {
			p.named.keys = append(p.named.keys, s.keys.Use(&t.Accounts[j]))
		}
	}
	p.keys = s.keys.Names.Chunks
	s.keys.mu.Unlock()
	p.filter = bloom.Of(p.named.keys)
	runtime.AddCleanup(p, (*named).drop, p.named)
	return p
}

// Key returns the number of a key that a packed block names, 0 if no block names it. A reachable block keeps the numbers of
// its keys, so the number means this key in all blocks that were packed before.
func (s *Store) Key(key *ledger.Pubkey) arena.Ref {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	return s.keys.Find(key)
}

func (s *Store) hash(sig *ledger.Signature) uint64 { return maphash.Bytes(s.seed, sig[:]) }

// Add makes the transactions of a block findable.
func (s *Store) Add(b *Block) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		b.number, s.free = s.free[n-1], s.free[:n-1]
	} else {
		b.number = uint32(len(s.blocks))
		s.blocks = append(s.blocks, nil)
	}
	s.blocks[b.number] = b
	s.bytes += b.packedBytes()
	s.mu.Unlock()
	s.eachLocked(b, func(index int, h uint64) {
		b.records[index].next = s.records[h]
		s.records[h] = b.ref(index)
		s.count++
	})
}

// Remove undoes Add for blocks.
func (s *Store) Remove(blocks []*Block) {
	for _, b := range blocks {
		s.eachLocked(b, func(index int, h uint64) { s.removeLocked(b, index, h) })
		s.mu.Lock()
		s.blocks[b.number] = nil
		s.bytes -= b.packedBytes()
		s.free = append(s.free, b.number)
		s.mu.Unlock()
	}
}

// eachLocked calls do for the records of a block and the hashes of their signatures.
func (s *Store) eachLocked(b *Block, do func(index int, h uint64)) {
	for from := 0; from < b.Len(); from += lockedAtOnce {
		s.mu.Lock()
		for i := from; i < min(from+lockedAtOnce, b.Len()); i++ {
			do(i, s.hash(&b.records[i].signature))
		}
		s.mu.Unlock()
	}
}

func (s *Store) removeLocked(b *Block, index int, h uint64) {
	s.count--
	r, removed := &b.records[index], b.ref(index)
	if before := s.records[h]; before != removed {
		_, at := s.find(before)
		for at.next != removed {
			_, at = s.find(at.next)
		}
		at.next = r.next
	} else if r.next != 0 {
		s.records[h] = r.next
	} else {
		delete(s.records, h)
	}
}

// Transaction returns the transaction with the signature in a block for which onChain is true, nil if there is none. If there
// are several, it returns the one of the newest slot. onChain is called with the store locked.
func (s *Store) Transaction(sig *ledger.Signature, onChain func(*Block) bool) *ledger.Transaction {
	var found *Block
	var index int
	h := s.hash(sig)
	s.mu.RLock()
	for ref := s.records[h]; ref != 0; {
		b, r := s.find(ref)
		i := int(uint32(ref))
		newer := found == nil || b.Block.Slot > found.Block.Slot || b == found && i > index
		if newer && r.signature == *sig && onChain(b) {
			found, index = b, i
		}
		ref = r.next
	}
	s.mu.RUnlock()
	if found == nil {
		return nil
	}
	return &found.Transactions(index, index+1)[0]
}

// SizeBytes estimates how much memory the blocks take with their transactions, the keys that these name, and their signatures.
func (s *Store) SizeBytes() int {
	s.mu.RLock()
	bytes := s.bytes + s.count*int(unsafe.Sizeof(uint64(0))+unsafe.Sizeof(recordRef(0)))*3/2
	s.mu.RUnlock()
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	return bytes + s.keys.SizeBytes()
}

// Len returns how many transactions can be found.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}
