package reader

import (
	"encoding/binary"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/published"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
)

// benchBlocks is how many blocks memory holds by default.
const benchBlocks = 9000

// BenchmarkTransactionsOfAnAddress reads a page of an address that one transaction names, in the oldest block, and of one that every
// third names.
func BenchmarkTransactionsOfAnAddress(b *testing.B) {
	rare, busy := ledger.Pubkey{1}, ledger.Pubkey{2}
	r := New(Config{Board: published.NewBoard(nil), Stored: txstore.New(), Shards: []*shard.Shard{shard.New(0, 1)}, Deadline: time.Minute})
	r.Board.Publish(&ledger.Publication{Head: benchHead(r.Stored, rare, busy, ledgertest.Sample(400, 100, 10))})
	for name, address := range map[string]ledger.Pubkey{"rare": rare, "busy": busy} {
		b.Run(name, func(b *testing.B) {
			in := ledger.TransactionRange{Address: ledger.Some(address), Limit: 100}
			b.ReportAllocs()
			var before, after syscall.Rusage
			ledgertest.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
			for b.Loop() {
				page, _, err := r.Transactions(ledger.Query{}, in)
				if err != nil || (len(page.Transactions) == 1) != (address == rare) {
					b.Fatalf("%d transactions, %v", len(page.Transactions), err)
				}
			}
			ledgertest.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
			b.ReportMetric(float64(after.Utime.Nano()-before.Utime.Nano()+after.Stime.Nano()-before.Stime.Nano())/float64(b.N), "cpu-ns/op")
		})
	}
}

// benchHead packs blocks of so many transactions, each of which names ten of 200,000 keys.
func benchHead(stored *txstore.Store, rare, busy ledger.Pubkey, transactions int) *ledger.Head {
	r := rand.New(rand.NewPCG(1, 2))
	chain := make(txstore.Chain, benchBlocks)
	for i := range chain {
		block := &ledger.Block{Slot: ledger.Slot(i + 1)}
		for n := range transactions {
			t := ledger.Transaction{Accounts: make([]ledger.Pubkey, 10)}
			binary.BigEndian.PutUint64(t.Signature[:], uint64(i*transactions+n))
			for k := range t.Accounts {
				binary.BigEndian.PutUint64(t.Accounts[k][8:], r.Uint64N(200_000))
			}
			switch {
			case i == 0 && n == 0:
				t.Accounts[0] = rare
			case n%3 == 0:
				t.Accounts[0] = busy
			}
			block.AddTransaction(t)
		}
		chain[i] = stored.Pack(block)
		stored.Add(chain[i])
	}
	head := &ledger.Head{HasBlock: true, Chain: chain}
	for i := range head.Tips {
		head.Tips[i].Slot = benchBlocks
	}
	return head
}
