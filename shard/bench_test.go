package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

const benchAccounts = 1_000_000

var programs = []ledger.Pubkey{ledger.SystemProgram, key(-1), key(-2), key(-3)}

// many returns so many accounts in key order and in memory as a decoder leaves them. Every other
// is a token account; a wallet has one or two of them.
func many(n int) []*ledger.Account {
	accounts := make([]*ledger.Account, n)
	for i := range accounts {
		a := &ledger.Account{Pubkey: key(i), Lamports: 1, Owner: programs[i/2%4], Known: ledger.FieldsShown | ledger.FieldToken}
		a.Provenance = ledger.BlockProvenance(9)
		if i%2 == 0 {
			a.Owner = ledger.TokenProgram
			a.Token = &ledger.TokenAccount{Mint: key(-i % 97), Owner: key(-1000 - i*7919%n*2/3), Amount: uint64(i)}
		}
		accounts[i] = a
	}
	slices.SortFunc(accounts, func(a, b *ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	return accounts
}

func content(accounts []*ledger.Account) Content {
	return Content{
		Version: 1,
		Accounts: func(visit func(*ledger.Account) bool) error {
			slices.Values(accounts)(visit)
			return nil
		},
		Mints: func(func(ledger.MintWrite) bool) error { return nil },
	}
}

// million runs a shard of a million accounts, and returns these.
func million(b *testing.B) (*Shard, []*ledger.Account) {
	accounts := many(benchAccounts)
	s := New(0, 1)
	must(b, s.Restore(content(accounts)))
	b.ReportAllocs()
	return run(b, s), accounts
}

// BenchmarkApply applies blocks of 3,000 writes to one shard of a million accounts, half of
// them token accounts, and folds what is so many blocks old: as a live ledger finalizes, and as
// blocks come at a million writes a second, of which two seconds and more are not folded.
func BenchmarkApply(b *testing.B) {
	const writes, blocks = 3000, 256
	for _, unfolded := range []ledger.Version{40, 750} {
		b.Run(fmt.Sprintf("unfolded=%d", unfolded), func(b *testing.B) {
			s, accounts := million(b)
			r := rand.New(rand.NewPCG(1, 1))
			ring := make([][]ledger.AccountWrite, blocks)
			for n := range ring {
				for range writes {
					w := accounts[r.IntN(benchAccounts)].Write()
					w.Lamports = ledger.Lamports(2 + n)
					ring[n] = append(ring[n], w)
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
			before := cpuTime(b)
			for b.Loop() {
				next()
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/writes, "cpu-ns/update")
		})
	}
}
