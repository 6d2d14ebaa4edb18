package shard

import (
	"context"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// many returns so many accounts in key order and in memory as a decoder leaves them. Every other
// is a token account; a wallet has one or two of them.
func many(n int) []*ledger.Account {
	keys := make([]ledger.Pubkey, n)
	for i := range keys {
		keys[i] = key(i)
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	programs := []ledger.Pubkey{ledger.SystemProgram, key(-1), key(-2), key(-3)}
	accounts := make([]*ledger.Account, n)
	for i := range accounts {
		a := &ledger.Account{Pubkey: keys[i], Lamports: 1, Owner: programs[i/2%4], Known: ledger.FieldsShown | ledger.FieldToken, Provenance: ledger.BlockProvenance(9)}
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
	const n = 1_000_000
	c := content(many(n))
	before := heapBytes()
	s := New(0, 1)
	if err := s.Restore(c); err != nil {
		b.Fatal(err)
	}
	size := float64(heapBytes()-before) / n
	if held := s.Counters().Accounts.Load(); held != n {
		b.Fatalf("%d accounts are held", held)
	}
	s = nil
	b.ReportAllocs()
	for b.Loop() {
		if err := New(0, 1).Restore(c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
	b.ReportMetric(size, "B/account")
}

// BenchmarkApplyBase teaches one shard the same accounts as base state, in random order.
// B/account is what the trees take.
func BenchmarkApplyBase(b *testing.B) {
	const n, batch = 1_000_000, 10_000
	accounts := many(n)
	bases := make([]*ledger.BaseState, n/batch)
	for i := range bases {
		bases[i] = new(ledger.BaseState)
	}
	for i, a := range accounts {
		base := bases[i*7919%len(bases)]
		base.Accounts = append(base.Accounts, ledger.AccountWrite{
			Pubkey: a.Pubkey, Lamports: a.Lamports, Owner: a.Owner, Known: a.Known, Token: a.Token,
		})
	}
	var size float64
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := New(0, 1)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		before := heapBytes()
		b.StartTimer()
		for _, base := range bases {
			wait(b, s.ApplyBase(1, base, true))
		}
		b.StopTimer()
		size = float64(heapBytes()-before) / n
		cancel()
		<-ended
		b.StartTimer()
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
	b.ReportMetric(size, "B/account")
}

// BenchmarkFreeze asks a shard of a million accounts for frozen copies, none of which is kept.
func BenchmarkFreeze(b *testing.B) {
	s := million(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Freeze(1).Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFoldAfterFreeze applies and folds blocks of a thousand random accounts of a million,
// with a copy taken before each or without any. The difference is what freezing costs a writer at most.
func BenchmarkFoldAfterFreeze(b *testing.B) {
	for _, freezes := range []bool{false, true} {
		b.Run(map[bool]string{false: "never", true: "each"}[freezes], func(b *testing.B) {
			s := million(b)
			keys := make([]ledger.Pubkey, 0, 1_000_000)
			s.state.accounts.ascend(&ledger.Pubkey{}, 1, func(a *ledger.Account) bool {
				keys = append(keys, a.Pubkey)
				return true
			})
			var kept *Frozen
			v := ledger.Version(1)
			for b.Loop() {
				if freezes {
					kept, _ = s.Freeze(v).Wait()
				}
				v++
				var writes []ledger.AccountWrite
				for i := range 1000 {
					writes = append(writes, lamports(keys[(int(v)*7919+i*104729)%len(keys)], ledger.Lamports(v)))
				}
				applyBlock(b, s, v, writes...)
				s.Fold(v, 0)
				settle(b, s, v)
			}
			_ = kept
		})
	}
}

// BenchmarkFrozenAccounts walks what is frozen of a million accounts; one op is one walk.
func BenchmarkFrozenAccounts(b *testing.B) {
	s := million(b)
	frozen, err := s.Freeze(1).Wait()
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		frozen.Accounts(func(a *ledger.Account) bool {
			n += int(a.Lamports) // reads it, as an encoder would
			return true
		})
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "accounts/s")
}

func million(b *testing.B) *Shard {
	s := New(0, 1)
	if err := s.Restore(content(many(1_000_000))); err != nil {
		b.Fatal(err)
	}
	return run(b, s)
}
