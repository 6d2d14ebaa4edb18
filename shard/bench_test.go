package shard

import (
	"math/rand/v2"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// BenchmarkAccount asks one shard of a million accounts for random ones.
func BenchmarkAccount(b *testing.B) {
	const accounts = 1_000_000
	s := start(b)
	keys := make([]ledger.Pubkey, accounts)
	for i := range keys {
		keys[i] = key(i)
	}
	before := heapBytes()
	for from := 0; from < accounts; from += 10_000 {
		base := &ledger.BaseState{}
		for _, k := range keys[from : from+10_000] {
			base.Accounts = append(base.Accounts, lamports(k, 1))
		}
		wait(b, s.ApplyBase(1, base, true))
	}
	size := float64(heapBytes()-before) / accounts
	deadline := soon()
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := s.Account(keys[r.IntN(accounts)], 1, deadline); err != nil || !found {
			b.Fatal(found, err)
		}
	}
	b.ReportMetric(size, "B/account")
}

var heapBytes = ledgertest.HeapBytes
