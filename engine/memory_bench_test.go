package engine

import (
	"context"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
)

// BenchmarkMemory measures what an account takes of a node's memory: LEDGERD_BENCH_ACCOUNTS accounts,
// 30 % of them token accounts with half as many wallets, all indexes, learned as base state in random
// order and then from a snapshot, while blocks are applied. B/account is of the heap, resident-B/account what the
// process takes more than before.
func BenchmarkMemory(b *testing.B) {
	n := recoveredAccounts(b)
	defer debug.SetGCPercent(debug.SetGCPercent(12)) // as ledgerd has it with a large heap
	b.Run("fed", func(b *testing.B) {
		measureMemory(b, n, func() (*Engine, *script, *ledger.Block) {
			e, source := running(b, finite())
			r := rand.New(rand.NewPCG(1, 1))
			order := r.Perm(n)
			for from := 0; from < n; from += 10_000 {
				base := &ledger.BaseState{Slot: 9}
				for _, i := range order[from:min(from+10_000, n)] {
					base.Accounts = append(base.Accounts, memoryAccount(i, n).Write())
				}
				source.feed <- base
			}
			root := rootBlock(10)
			source.feed <- root
			reach(e, 10)
			return e, source, root
		})
	})
	b.Run("recovered", func(b *testing.B) {
		path := b.TempDir()
		writeAccounts(b, path, n, memoryAccount)
		measureMemory(b, n, func() (*Engine, *script, *ledger.Block) {
			dir, err := datadir.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			source := newScript(finite())
			e := New(Config{Dir: dir, Source: source, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			b.Cleanup(func() { cancel(); <-ended; dir.Close() })
			reach(e, 1000)
			return e, source, rootBlock(1000)
		})
	})
}

func measureMemory(b *testing.B, n int, begin func() (*Engine, *script, *ledger.Block)) {
	var heap, resident float64
	for b.Loop() {
		debug.FreeOSMemory()
		heapBefore, before := heapBytes(), residentBytes()
		_, source, parent := begin()
		r := rand.New(rand.NewPCG(2, 2))
		for range 30 {
			var writes []ledger.AccountWrite
			for range 1000 {
				w := memoryAccount(r.IntN(n), n).Write()
				w.Lamports++
				writes = append(writes, w)
			}
			parent = child(parent, parent.Slot+1, 0, writes...)
			source.feed <- parent
		}
		resident = float64(residentBytes()-before) / float64(n)
		heap = float64(heapBytes()-heapBefore) / float64(n)
	}
	b.ReportMetric(heap, "B/account")
	b.ReportMetric(resident, "resident-B/account")
}

// memoryAccount returns the i-th of n accounts, in pubkey order.
func memoryAccount(i, n int) *ledger.Account {
	a := &ledger.Account{
		Pubkey: benchKey(i, n), Owner: ledger.SystemProgram, Lamports: ledger.Lamports(1_000_000 + i*7),
		RentEpoch: math.MaxUint64, Known: ledger.FieldsAll &^ ledger.FieldMint, Provenance: ledger.BlockProvenance(1000),
	}
	if i%10 < 3 {
		a.Owner = ledger.TokenProgram
		a.Token = &ledger.TokenAccount{
			Mint: key(i % 1000), Owner: key(1_000_000 + i*7919%n/2), Amount: uint64(i) * 1_000_003,
			Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized}),
		}
	}
	return a
}
