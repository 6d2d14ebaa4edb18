package txstore

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"weak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// randomBlock has transactions that may say anything there is to say of one. Blocks of a kind name
// keys of their own, beside those that all name.
func randomBlock(r *rand.Rand, slot ledger.Slot, kind, keys int) *ledger.Block {
	b := &ledger.Block{Slot: slot, ParentSlot: slot - 1, TransactionCount: 9, Accounts: make([]ledger.AccountWrite, 3)}
	if r.IntN(4) > 0 {
		b.Time = ledger.Some(r.Int64())
	}
	for range r.IntN(20) {
		t := ledger.Transaction{Signature: signature(r.IntN(1 << 20))}
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

// TestPackedBlocksReadAsTheyWere packs and adds random blocks and gives some up, while readers go on with
// blocks that they were given before. All must read as they were, and in the end no key is left.
func TestPackedBlocksReadAsTheyWere(t *testing.T) {
	r := ledgertest.Seeded(t, 1)
	s := New()
	var blocks []*ledger.Block
	var held []*Block
	var readers sync.WaitGroup
	for n := range 400 {
		b := randomBlock(r, ledger.Slot(n+1), n/20, 300)
		blocks, held = append(blocks, b), append(held, s.Pack(b))
		s.Add(held[len(held)-1])
		if len(held) < 50 {
			continue
		}
		some := 1 + r.IntN(len(held)-1)
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
		wanted, looked := Wanted{}, key(n/20*300+r.IntN(300))
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
		ledgertest.Equal(t, h.Len(), len(want.Transactions), "transactions of block %d", want.Slot)
		ledgertest.Equal(t, h.SizeBytes(), want.SizeBytes(), "bytes of block %d", want.Slot)
		s.Remove(held[:1])
		blocks, held = blocks[1:], held[1:]
		if n%40 == 0 {
			runtime.GC()
		}
	}
	readers.Wait()
	ledgertest.Holds(t, s.named() != 0, "no keys are held while blocks are")
	s.Remove(held)
	held = nil
	for s.named() > 0 { // the cleanups of the blocks run some time after
		runtime.GC()
	}
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
