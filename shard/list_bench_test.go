package shard

import (
	"testing"

	"ledgerd/engine/ledger"
)

// BenchmarkList reads 1,000 accounts of one of 16 programs at a time, from a shard of a million
// accounts of which 32 blocks of a thousand writes are not folded. CPU-ns/record is of the shard
// and its asker.
func BenchmarkList(b *testing.B) {
	const accounts, programs, limit, blocks = 1_000_000, 16, 1000, 32
	s := start(b)
	owner := func(i int) ledger.Pubkey { return key(accounts + i%programs) }
	for from := 0; from < accounts; from += 10_000 {
		base := &ledger.BaseState{}
		for i := from; i < from+10_000; i++ {
			base.Accounts = append(base.Accounts, owned(key(i), 1, owner(i)))
		}
		wait(b, s.ApplyBase(1, base, true))
	}
	for n := range blocks {
		var writes []ledger.AccountWrite
		for i := range limit {
			i = (n*limit + i) * 31 % accounts
			writes = append(writes, owned(key(i), 2, owner(i)))
		}
		applyBlock(b, s, ledger.Version(2+n), writes...)
	}
	deadline := soon()
	b.ReportAllocs()
	records, begun := 0, cpuTime(b)
	for n := 0; b.Loop(); n++ {
		m := Members{Group: owner(n)}
		var page Page
		for got := 0; !page.Done && got < limit; got += len(page.Accounts) {
			var err error
			if page, err = s.List(m, page.Next, limit-got, 2+blocks, deadline, nil); err != nil {
				b.Fatal(err)
			}
			records += len(page.Accounts)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-begun)/float64(records), "CPU-ns/record")
}
