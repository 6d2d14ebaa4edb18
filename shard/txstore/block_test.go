package txstore

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"weak"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = ledgertest.Key

// signatures are how many there are.
const signatures = 40

func signature(n int) (s ledger.Signature) {
	binary.BigEndian.PutUint64(s[8:], uint64(n))
	return s
}

// randomBlock has transactions that may say anything there is to say of one. Blocks of a kind name
// keys of their own, beside those that all name.
func randomBlock(r *rand.Rand, slot ledger.Slot, kind, keys int) *ledger.Block {
	b := &ledger.Block{Slot: slot, ParentSlot: slot - 1, TransactionCount: 9, Accounts: make([]ledger.AccountWrite, 3)}
	if r.IntN(4) > 0 {
		b.Time = ledger.Some(r.Int64())
	}
	for range r.IntN(20) {
		t := ledger.Transaction{Signature: signature(r.IntN(signatures))}
		if r.IntN(4) > 0 {
			t.Fee = ledger.Some(ledger.Lamports(r.Uint64() >> r.IntN(64)))
		}
		if r.IntN(4) > 0 {
			if t.Success = ledger.Some(r.IntN(2) == 0); !t.Success.Value && r.IntN(3) > 0 {
				t.Err = strconv.Itoa(r.IntN(50))
			}
		}
		for range r.IntN(2) * r.IntN(30) {
			k := key(kind*keys + r.IntN(keys))
			if r.IntN(5) == 0 {
				k = []ledger.Pubkey{ledger.SystemProgram, ledger.VoteProgram}[r.IntN(2)]
			}
			t.Accounts = append(t.Accounts, k)
		}
		b.AddTransaction(t)
	}
	return b
}

// TestBlocksReadAsTheyWereAndAreFoundOnTheirChain packs and adds random blocks of several branches, many of which have the same signatures, and
// removes some, while readers go on with blocks that they were given before. All must read as they were, all signatures are asked for on chains
// of random blocks, and in the end no key is left.
func TestBlocksReadAsTheyWereAndAreFoundOnTheirChain(t *testing.T) {
	r := ledgertest.Seeded(t, 1)
	s := New()
	var blocks []*ledger.Block
	var held []*Block
	var readers sync.WaitGroup
	for step := range 400 {
		if n := min(len(held), 1+r.IntN(3)); n > 0 && (len(held) > 50 || step > 350 || r.IntN(4) == 0) {
			r.Shuffle(len(held), func(i, j int) {
				held[i], held[j], blocks[i], blocks[j] = held[j], held[i], blocks[j], blocks[i]
			})
			s.Remove(held[:n])
			held, blocks = slices.Clone(held[n:]), blocks[n:] // nothing keeps those that were removed
		} else {
			b := randomBlock(r, ledger.Slot(step+1), step/20, 300)
			blocks, held = append(blocks, b), append(held, s.Pack(b))
			s.Add(held[len(held)-1])
		}
		if len(held) == 0 {
			continue
		}
		some := r.IntN(len(held))
		h, want := held[some], blocks[some].WithoutWrites()
		readers.Go(func() {
			for range 5 {
				ledgertest.Equal(t, h.Whole(), want, "block %d", want.Slot)
				s.Transaction(&ledger.Signature{}, func(other *Block) bool { return other == h })
				runtime.Gosched()
			}
		})
		for i := range want.Transactions {
			ledgertest.Equal(t, &h.Signatures()[i].Signature, &want.Transactions[i].Signature, "the signature of transaction %d of block %d", i, want.Slot)
			last := i + 1 + r.IntN(h.Len()-i)
			ledgertest.Equal(t, h.Transactions(i, last), want.Transactions[i:last], "transactions %d to %d of block %d", i, last, want.Slot)
		}
		wanted, looked := Wanted{}, key(int(want.Slot)/20*300+r.IntN(300))
		if r.IntN(4) > 0 {
			wanted.Key = s.Key(&looked)
		}
		if r.IntN(2) == 0 {
			wanted.Success = ledger.Some(r.IntN(2) == 0)
		}
		for i, tx := range want.Transactions {
			has := (wanted.Key == 0 || slices.Contains(tx.Accounts, looked)) && (!wanted.Success.Known || tx.Success == wanted.Success)
			if h.Has(wanted, i) != has || has && !h.MayHave(wanted) {
				t.Fatalf("transaction %d of block %d: wanted %v, looking for %v in %v", i, want.Slot, has, wanted, tx)
			}
			ledgertest.Equal(t, h.Keys(i), len(tx.Accounts), "keys of transaction %d of block %d", i, want.Slot)
		}
		ledgertest.Equal(t, h.SizeBytes(), want.SizeBytes(), "bytes of block %d", want.Slot)

		chain, found, count := make(map[*Block]bool), make(map[ledger.Signature]*ledger.Transaction), 0
		for i, b := range blocks {
			count += held[i].Len()
			if chain[held[i]] = r.IntN(2) == 0; !chain[held[i]] {
				continue
			}
			for n := range b.Transactions {
				tx := &b.Transactions[n]
				if before := found[tx.Signature]; before == nil || before.Slot <= tx.Slot {
					found[tx.Signature] = tx
				}
			}
		}
		for n := range signatures {
			sig := signature(n)
			ledgertest.Equal(t, s.Transaction(&sig, func(b *Block) bool { return chain[b] }), found[sig], "step %d: what has signature %d", step, n)
		}
		ledgertest.Equal(t, s.Len(), count, "step %d: transactions that are found", step)
		if step%40 == 0 {
			runtime.GC()
		}
	}
	readers.Wait()
	ledgertest.Holds(t, s.named() != 0, "no keys are held while blocks are")
	s.Remove(held)
	held = nil
	ledgertest.Equal(t, []int{len(s.records), s.bytes}, []int{0, 0}, "signatures and bytes that are left of no blocks")
	for s.named() > 0 { // the cleanups of the blocks run some time after
		runtime.GC()
	}
}

// TestSizeIsWhatIsAllocated compares the size of a store with the growth of the heap, also after half of its blocks were removed.
func TestSizeIsWhatIsAllocated(t *testing.T) {
	const blocks, transactions = 400, 100
	r, before := ledgertest.Seeded(t, 5), ledgertest.HeapBytes()
	s, held := New(), make([]*Block, blocks)
	for i := range held {
		b := &ledger.Block{Slot: ledger.Slot(i)}
		for n := range transactions {
			b.AddTransaction(ledger.Transaction{
				Signature: signature(i*transactions + n), Accounts: []ledger.Pubkey{key(r.IntN(10_000)), key(r.IntN(10_000)), key(-i)},
			})
		}
		held[i] = s.Pack(b)
		s.Add(held[i])
	}
	for _, left := range []int{blocks, blocks / 2} {
		s.Remove(held[left:])
		clear(held[left:])
		got, want := float64(s.SizeBytes()), float64(ledgertest.HeapBytes()-before)
		if got < 0.7*want || got > 1.3*want {
			t.Errorf("%d blocks: %.1f MB are told, %.1f MB were allocated", left, got/1e6, want/1e6)
		}
	}
	runtime.KeepAlive(s)
}

// TestADroppedStoreIsCollected drops a store that holds a block.
func TestADroppedStoreIsCollected(t *testing.T) {
	s := New()
	b := s.Pack(randomBlock(ledgertest.Seeded(t, 3), 7, 0, 50))
	s.Add(b)
	gone := weak.Make(b)
	s, b = nil, nil
	for gone.Value() != nil {
		runtime.GC()
	}
}

// named returns how many keys are stored.
func (s *Store) named() int {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	return s.keys.Names.Taken()
}

// TestTransactionSize holds what one takes beside its keys.
func TestTransactionSize(t *testing.T) {
	ledgertest.Equal(t, reflect.TypeFor[record]().Size(), 88, "bytes of a transaction")
}
