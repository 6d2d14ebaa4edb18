package txstore

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// BenchmarkStore packs and adds blocks of 1000 transactions that name 12 of 200,000 accounts each, and keeps the newest 200
// of them.
func BenchmarkStore(b *testing.B) {
	const transactions, accounts, kept = 1000, 200_000, 200
	r := rand.New(rand.NewPCG(1, 2))
	ring := make([]*ledger.Block, 64)
	for n := range ring {
		ring[n] = &ledger.Block{Slot: ledger.Slot(n)}
		for i := range transactions {
			t := ledger.Transaction{Signature: signature(n*transactions + i), Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true)}
			for range 12 {
				t.Accounts = append(t.Accounts, key(r.IntN(accounts)))
			}
			ring[n].AddTransaction(t)
		}
	}
	s, held := New(), make([]*Block, kept)
	add := func(n int) {
		held[n%kept] = s.Pack(ring[n%len(ring)])
		s.Add(held[n%kept])
	}
	before := ledgertest.HeapBytes()
	for n := range kept {
		add(n)
	}
	each := float64(ledgertest.HeapBytes()-before) / (kept * transactions)
	b.ReportAllocs()
	start := ledgertest.CPUTime(b)
	for n := 0; b.Loop(); n++ {
		s.Remove(held[n%kept:][:1])
		add(n)
	}
	b.ReportMetric(float64(ledgertest.CPUTime(b)-start)/float64(b.N)/transactions, "cpu-ns/transaction")
	b.ReportMetric(each, "B/transaction")
	runtime.KeepAlive(held)
}
