package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

const (
	benchAccounts = 1_000_000
	benchBatch    = 10_000
)

// filled returns a shard that learned a million accounts as base state.
func filled(b *testing.B, write func(n int) ledger.AccountWrite) *Shard {
	s := start(b)
	for from := 0; from < benchAccounts; from += benchBatch {
		base := &ledger.BaseState{}
		for n := from; n < from+benchBatch; n++ {
			base.Accounts = append(base.Accounts, write(n))
		}
		wait(b, s.ApplyBase(1, base, true))
	}
	return s
}

// BenchmarkAccount asks one shard of a million accounts for random ones.
func BenchmarkAccount(b *testing.B) {
	keys := make([]ledger.Pubkey, benchAccounts)
	for i := range keys {
		keys[i] = key(i)
	}
	before := heapBytes()
	s := filled(b, func(n int) ledger.AccountWrite { return lamports(keys[n], 1) })
	size := float64(heapBytes()-before) / benchAccounts
	deadline, r := soon(), rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := s.Account(keys[r.IntN(benchAccounts)], 1, deadline); err != nil || !found {
			b.Fatal(found, err)
		}
	}
	b.ReportMetric(size, "B/account")
}

// BenchmarkApply applies blocks of 3,000 writes to one shard of a million accounts, a third of
// them token accounts, and folds what is so many blocks old: as a live ledger finalizes, and as
// blocks come at a million writes a second, of which two seconds and more are not folded.
func BenchmarkApply(b *testing.B) {
	const writes, blocks = 3000, 256
	for _, unfolded := range []ledger.Version{40, 750} {
		b.Run(fmt.Sprintf("unfolded=%d", unfolded), func(b *testing.B) {
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
			s := filled(b, func(n int) ledger.AccountWrite { return write(n, 1) })
			ring := make([][]ledger.AccountWrite, blocks)
			for n := range ring {
				for range writes {
					ring[n] = append(ring[n], write(r.IntN(benchAccounts), uint64(2+n)))
				}
			}
			v := ledger.Version(1)
			next := func() {
				v++
				applyBlock(b, s, v, ring[int(v)%blocks]...)
				if v > unfolded {
					s.Fold(v-unfolded, 0)
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
		})
	}
}

// BenchmarkList reads 1,000 accounts of one of 16 programs at a time, from a shard of a million
// accounts of which 32 blocks of a thousand writes are not folded. CPU-ns/record is of the shard
// and its asker.
func BenchmarkList(b *testing.B) {
	const programs, limit, blocks = 16, 1000, 32
	owner := func(i int) ledger.Pubkey { return key(benchAccounts + i%programs) }
	s := filled(b, func(n int) ledger.AccountWrite { return owned(key(n), 1, owner(n)) })
	for n := range blocks {
		var writes []ledger.AccountWrite
		for i := range limit {
			i = (n*limit + i) * 31 % benchAccounts
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

// many returns so many accounts in key order and in memory as a decoder leaves them. Every other
// is a token account; a wallet has one or two of them.
func many(n int) []*ledger.Account {
	keys := make([]ledger.Pubkey, n)
	for i := range keys {
		keys[i] = key(i)
	}
	slices.SortFunc(keys, compareKeys)
	programs := []ledger.Pubkey{ledger.SystemProgram, key(-1), key(-2), key(-3)}
	accounts := make([]*ledger.Account, n)
	for i := range accounts {
		a := &ledger.Account{Pubkey: keys[i], Lamports: 1, Owner: programs[i/2%4], Known: ledger.FieldsShown | ledger.FieldToken}
		a.Provenance = ledger.BlockProvenance(9)
		if i%2 == 0 {
			a.Owner = ledger.TokenProgram
			a.Token = &ledger.TokenAccount{Mint: key(-i % 97), Owner: key(-1000 - i*7919%n*2/3), Amount: uint64(i)}
		}
		accounts[i] = a
	}
	return accounts
}

func content(accounts []*ledger.Account) Content {
	return Content{
		Version: 1,
		Accounts: func(visit func(*ledger.Account) bool) error {
			for _, a := range accounts {
				visit(a)
			}
			return nil
		},
		Mints: func(func(ledger.MintWrite) bool) error { return nil },
	}
}

// BenchmarkRestore fills one shard with a million accounts that are there already, half of
// them token accounts. B/account is what the trees take.
func BenchmarkRestore(b *testing.B) {
	c := content(many(benchAccounts))
	before := heapBytes()
	s := New(0, 1)
	if err := s.Restore(c); err != nil {
		b.Fatal(err)
	}
	size := float64(heapBytes()-before) / benchAccounts
	if held := s.Counters().Accounts.Load(); held != benchAccounts {
		b.Fatalf("%d accounts are held", held)
	}
	s = nil
	b.ReportAllocs()
	for b.Loop() {
		if err := New(0, 1).Restore(c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(benchAccounts*float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
	b.ReportMetric(size, "B/account")
}

// BenchmarkApplyBase teaches one shard the same accounts as base state, in random order.
func BenchmarkApplyBase(b *testing.B) {
	accounts := many(benchAccounts)
	write := func(n int) ledger.AccountWrite { return accounts[n*7919%benchAccounts].Write() }
	b.ReportAllocs()
	for b.Loop() {
		filled(b, write)
	}
	b.ReportMetric(benchAccounts*float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
}

func million(b *testing.B) *Shard {
	s := New(0, 1)
	if err := s.Restore(content(many(benchAccounts))); err != nil {
		b.Fatal(err)
	}
	return run(b, s)
}

// BenchmarkFreeze asks a shard of a million accounts for frozen copies, none of which is kept.
func BenchmarkFreeze(b *testing.B) {
	s := million(b)
	b.ReportAllocs()
	for b.Loop() {
		wait(b, s.Freeze(1))
	}
}

// BenchmarkFoldAfterFreeze applies and folds blocks of a thousand random accounts of a million,
// with a copy taken before each or without any. The difference is what freezing costs a writer at most.
func BenchmarkFoldAfterFreeze(b *testing.B) {
	for _, freezes := range []bool{false, true} {
		b.Run(map[bool]string{false: "never", true: "each"}[freezes], func(b *testing.B) {
			s := million(b)
			var kept *Frozen
			v := ledger.Version(1)
			for b.Loop() {
				if freezes {
					kept = wait(b, s.Freeze(v))
				}
				v++
				var writes []ledger.AccountWrite
				for i := range 1000 {
					writes = append(writes, lamports(key((int(v)*7919+i*104729)%benchAccounts), ledger.Lamports(v)))
				}
				applyBlock(b, s, v, writes...)
				s.Fold(v, 0)
			}
			_ = kept
		})
	}
}

// BenchmarkFrozenAccounts walks what is frozen of a million accounts; one op is one walk.
func BenchmarkFrozenAccounts(b *testing.B) {
	frozen := wait(b, million(b).Freeze(1))
	n := 0
	for b.Loop() {
		frozen.Accounts(func(a *ledger.Account) bool {
			n += int(a.Lamports) // reads it, as an encoder would
			return true
		})
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "accounts/s")
}
