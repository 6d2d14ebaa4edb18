package txstore

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"ledgerd/engine/ledger"
)

// BenchmarkPackBlock packs blocks of 1000 transactions that name 12 of 200,000 accounts each, and
// keeps the newest 200 of them.
func BenchmarkPackBlock(b *testing.B) {
	const transactions, named, accounts, blocks, kept = 1000, 12, 200_000, 64, 200
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([]ledger.Pubkey, accounts)
	for i := range keys {
		for n := range keys[i] {
			keys[i][n] = byte(r.Uint32())
		}
	}
	ring := make([]*ledger.Block, blocks)
	for n := range ring {
		ring[n] = &ledger.Block{Slot: ledger.Slot(n)}
		for range transactions {
			t := ledger.Transaction{Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true)}
			for range named {
				t.Accounts = append(t.Accounts, keys[r.IntN(accounts)])
			}
			ring[n].AddTransaction(t)
		}
	}
	s := New()
	held := make([]*Block, kept)
	before := heapBytes()
	for n := range held {
		held[n] = s.Pack(ring[n%blocks])
	}
	each := float64(heapBytes()-before) / (kept * transactions)
	b.ReportAllocs()
	start := cpuTime(b)
	n := 0
	for b.Loop() {
		held[n%kept] = s.Pack(ring[n%blocks])
		n++
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/transactions, "cpu-ns/transaction")
	b.ReportMetric(each, "B/transaction")
	runtime.KeepAlive(held)
}
