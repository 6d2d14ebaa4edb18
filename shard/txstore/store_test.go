package txstore

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	seeded    = ledgertest.Seeded
	key       = ledgertest.Key
	heapBytes = ledgertest.HeapBytes
	cpuTime   = ledgertest.CPUTime
)

func signature(n int) (s ledger.Signature) {
	binary.BigEndian.PutUint64(s[8:], uint64(n))
	return s
}

// TestTransactionsAreFoundOnTheirChain adds and removes blocks of several branches, many of which have the
// same signatures, some twice, and asks for all signatures on chains of random blocks.
func TestTransactionsAreFoundOnTheirChain(t *testing.T) {
	const signatures = 40
	r := seeded(t, 1)
	s := New()
	var blocks []*Block
	for step := range 400 {
		if len(blocks) > 0 && r.IntN(5) < 2 || step > 350 {
			n := min(len(blocks), 1+r.IntN(3))
			r.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
			s.Remove(blocks[:n])
			blocks = blocks[n:]
		} else {
			b := &ledger.Block{Slot: ledger.Slot(step)}
			for range r.IntN(8) {
				b.AddTransaction(ledger.Transaction{Signature: signature(r.IntN(signatures)), Accounts: []ledger.Pubkey{key(step)}})
			}
			blocks = append(blocks, s.Pack(b))
			s.Add(blocks[len(blocks)-1])
		}
		chain := make(map[*Block]bool)
		want := make(map[ledger.Signature]ledger.Transaction)
		count := 0
		for _, b := range slices.SortedFunc(slices.Values(blocks), func(a, b *Block) int { return int(a.Block.Slot) - int(b.Block.Slot) }) {
			count += b.Len()
			if chain[b] = r.IntN(2) == 0; chain[b] {
				for _, tx := range b.Transactions(0, b.Len()) {
					want[tx.Signature] = tx
				}
			}
		}
		for n := range signatures {
			sig := signature(n)
			got := s.Transaction(&sig, func(b *Block) bool { return chain[b] })
			if tx, found := want[sig]; found != (got != nil) || found && !reflect.DeepEqual(*got, tx) {
				t.Fatalf("step %d: signature %d is of %+v, want %+v (found %v)", step, n, got, tx, found)
			}
		}
		if s.Len() != count {
			t.Fatalf("step %d: %d transactions are found, want %d", step, s.Len(), count)
		}
	}
	if len(s.records) != 0 {
		t.Errorf("%d signatures are left of no blocks", len(s.records))
	}
}

// TestStoreOfAWindowDoesNotGrow slides a window of blocks over a store, as retention does.
func TestStoreOfAWindowDoesNotGrow(t *testing.T) {
	const window, rounds, each = 16, 300, 500
	s := New()
	var blocks []*Block
	next := 0
	slide := func() {
		b := &ledger.Block{Slot: ledger.Slot(next)}
		for range each {
			next++
			b.AddTransaction(ledger.Transaction{Signature: signature(next)})
		}
		blocks = append(blocks, s.Pack(b))
		s.Add(blocks[len(blocks)-1])
		if len(blocks) > window {
			s.Remove(blocks[:1])
			blocks = slices.Delete(blocks, 0, 1)
		}
	}
	for range 2 * window {
		slide()
	}
	before := heapBytes()
	for range rounds {
		slide()
	}
	if after := heapBytes(); after > before+before/4 {
		t.Errorf("%d bytes after %d rounds, want about the %d of the first", after, rounds, before)
	}
	runtime.KeepAlive(s)
}

// TestReadersFindWhileBlocksComeAndGo adds and removes under readers of blocks that stay. The race detector
// is the judge.
func TestReadersFindWhileBlocksComeAndGo(t *testing.T) {
	s := New()
	block := func(slot int) *Block {
		b := &ledger.Block{Slot: ledger.Slot(slot)}
		b.AddTransaction(ledger.Transaction{Signature: signature(0), Accounts: []ledger.Pubkey{key(slot)}})
		return s.Pack(b)
	}
	stays := block(1)
	s.Add(stays)
	ended := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for sig := signature(0); ; {
				tx := s.Transaction(&sig, func(b *Block) bool { return b == stays })
				if tx == nil || tx.Slot != 1 || tx.Accounts[0] != key(1) {
					t.Errorf("found %+v, want that of slot 1", tx)
				}
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	for slot := range 2000 {
		b := block(2 + slot)
		s.Add(b)
		s.Remove([]*Block{b})
	}
	close(ended)
	readers.Wait()
}

// BenchmarkAdd adds blocks of 1000 transactions to a store of 200,000 and removes the oldest.
func BenchmarkAdd(b *testing.B) {
	const each, window = 1000, 200
	r := rand.New(rand.NewPCG(1, 1))
	s := New()
	next := func() *Block {
		block := &ledger.Block{}
		for range each {
			sig := signature(int(r.Int64()))
			block.AddTransaction(ledger.Transaction{Signature: sig})
		}
		return s.Pack(block)
	}
	ring := make([]*Block, window+16)
	for i := range ring {
		ring[i] = next()
	}
	heapBytes() // what it frees first are blocks that were packed
	before := heapBytes()
	for _, block := range ring[:window] {
		s.Add(block)
	}
	size := float64(int64(heapBytes()-before)) / (each * window)
	n := window
	for b.Loop() {
		s.Add(ring[n%len(ring)])
		s.Remove(ring[(n-window)%len(ring):][:1])
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*each), "ns/transaction")
	b.ReportMetric(size, "B/transaction")
}
