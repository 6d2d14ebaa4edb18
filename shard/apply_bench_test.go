package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// BenchmarkApply applies blocks of 3,000 writes to one shard of a million accounts, a third of
// them token accounts, and folds what is so many blocks old: as a live ledger finalizes, and as
// blocks come at a million writes a second, of which two seconds and more are not folded.
func BenchmarkApply(b *testing.B) {
	for _, unfolded := range []int{40, 750} {
		b.Run(fmt.Sprintf("unfolded=%d", unfolded), func(b *testing.B) { benchApply(b, unfolded) })
	}
}

func benchApply(b *testing.B, unfolded int) {
	const accounts, writes, blocks = 1_000_000, 3000, 256
	s := newState(0, 1)
	r := rand.New(rand.NewPCG(1, 1))
	write := func(n int, amount uint64) ledger.AccountWrite {
		w := lamports(key(n), ledger.Lamports(amount))
		if w.RentEpoch--; n%3 == 0 {
			w.Owner = ledger.TokenProgram
			w.Token = &ledger.TokenAccount{Mint: key(-1 - n%1000), Owner: key(-10_000 - n/2), Amount: amount}
			w.Token.Details = ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})
		}
		return w
	}
	for from := 0; from < accounts; from += 10_000 {
		base := &ledger.BaseState{}
		for n := from; n < from+10_000; n++ {
			base.Accounts = append(base.Accounts, write(n, 1))
		}
		finish(s, &apply{version: 1, direct: true, provenance: ledger.BaseProvenance(0), writes: base.Accounts, base: base})
	}
	ring := make([][]ledger.AccountWrite, blocks)
	for n := range ring {
		for range writes {
			ring[n] = append(ring[n], write(r.IntN(accounts), uint64(2+n)))
		}
	}
	v := ledger.Version(1)
	next := func() {
		v++
		block := &ledger.Block{Slot: ledger.Slot(v), Accounts: ring[int(v)%blocks]}
		finish(s, &apply{version: v, provenance: ledger.BlockProvenance(block.Slot), writes: block.Accounts})
		if v > ledger.Version(unfolded) {
			finish(s, &fold{to: v - ledger.Version(unfolded)})
		}
	}
	for range unfolded {
		next()
	}
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		next()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/writes, "cpu-ns/update")
}

// finish does a piece of work as a shard does.
func finish(s *state, j job) {
	for j.step(s) {
	}
	s.count()
	s.shed()
}

var cpuTime = ledgertest.CPUTime
