package engine

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// running starts an engine over a script, outside any bubble, until the benchmark ends.
func running(b *testing.B, info ledger.SourceInfo) (*Engine, *script) {
	b.Helper()
	source := newScript(info)
	e := New(Config{Source: source, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("Run: %v", err)
		}
	})
	return e, source
}

// reach waits until the engine stands at slot.
func reach(e *Engine, slot ledger.Slot) {
	for {
		next := e.nextPublication()
		if h := e.Head(); h != nil && h.Tip(ledger.Processed).Slot >= slot {
			return
		}
		<-next
	}
}

var heapBytes = ledgertest.HeapBytes

const benchAccounts = 1_000_000

// loadMillion loads a million accounts as base state, and a root block above them.
func loadMillion(b *testing.B, e *Engine, source *script, keys []ledger.Pubkey) *ledger.Block {
	b.Helper()
	for from := 0; from < len(keys); from += 10_000 {
		base := &ledger.BaseState{Slot: 9}
		for _, k := range keys[from : from+10_000] {
			base.Accounts = append(base.Accounts, lamports(k, 1))
		}
		source.feed <- base
	}
	root := rootBlock(10)
	source.feed <- root
	reach(e, 10)
	return root
}

func benchKeys() []ledger.Pubkey {
	keys := make([]ledger.Pubkey, benchAccounts)
	for i := range keys {
		keys[i] = key(i)
	}
	return keys
}

// BenchmarkAccount asks an engine of a million accounts for random ones, and reports what an
// account takes in memory.
func BenchmarkAccount(b *testing.B) {
	keys := benchKeys()
	before := heapBytes()
	e, source := running(b, finite())
	loadMillion(b, e, source, keys)
	size := float64(heapBytes()-before) / benchAccounts
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for pb.Next() {
				if _, _, err := e.Account(ledger.Query{}, keys[r.IntN(benchAccounts)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(size, "B/account")
	})
}

// BenchmarkIngest follows blocks of 3000 updates each, over a million accounts.
func BenchmarkIngest(b *testing.B) {
	const updates = 3000
	keys := benchKeys()
	e, source := running(b, finite())
	parent := loadMillion(b, e, source, keys)
	r := rand.New(rand.NewPCG(1, 1))
	var blocks []*ledger.Block
	for n := range 64 {
		writes := make([]ledger.AccountWrite, updates)
		for i := range writes {
			writes[i] = lamports(keys[r.IntN(benchAccounts)], ledger.Lamports(2+n))
		}
		blocks = append(blocks, &ledger.Block{Accounts: writes})
	}
	b.ReportAllocs()
	for b.Loop() {
		next := child(parent, parent.Slot+1, 0, blocks[int(parent.Slot)%len(blocks)].Accounts...)
		source.feed <- next
		parent = next
	}
	reach(e, parent.Slot)
	b.ReportMetric(float64(b.N)*updates/b.Elapsed().Seconds(), "updates/s")
}
