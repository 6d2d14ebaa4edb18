package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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

// BenchmarkBlockBesideLists applies blocks of 3,000 writes while so many callers read the longest pages without a pause. Lists should
// at most double the time.
func BenchmarkBlockBesideLists(b *testing.B) {
	const writes = 3000
	for _, lists := range []int{0, queryLane} {
		b.Run(fmt.Sprintf("lists=%d", lists), func(b *testing.B) {
			s, accounts := million(b)
			ctx, cancel := context.WithCancel(b.Context())
			var readers sync.WaitGroup
			for n := range lists {
				readers.Go(func() {
					for v := ledger.Version(newest); ctx.Err() == nil; {
						_, _ = s.List(Members{Group: programs[n%4]}, ledger.Opt[ledger.Pubkey]{}, pageKeys, v, soon(), nil)
					}
				})
			}
			v := ledger.Version(1)
			for n := 0; b.Loop(); n++ {
				v++
				block := make([]ledger.AccountWrite, writes)
				for i := range block {
					block[i] = accounts[(n*writes+i)*31%benchAccounts].Write()
					block[i].Lamports += ledger.Lamports(v)
				}
				applyBlock(b, s, v, block...)
				s.Fold(v, 0)
			}
			cancel()
			readers.Wait()
		})
	}
}

// BenchmarkList reads 1,000 accounts of one of 4 programs at a time, from a shard of a million
// accounts of which 32 blocks of a thousand writes are not folded. CPU-ns/record is of the shard
// and its caller.
func BenchmarkList(b *testing.B) {
	const limit, blocks = 1000, 32
	s, accounts := million(b)
	for n := range blocks {
		var writes []ledger.AccountWrite
		for i := range limit {
			writes = append(writes, accounts[(n*limit+i)*31%benchAccounts].Write())
			writes[i].Lamports++
		}
		applyBlock(b, s, ledger.Version(2+n), writes...)
	}
	deadline := soon()
	records, begun := 0, cpuTime(b)
	for n := 0; b.Loop(); n++ {
		var page Page
		var err error
		for got := 0; !page.Done && got < limit; got += len(page.Accounts) {
			page, err = s.List(Members{Group: programs[n%4]}, page.Next, limit-got, 1+blocks, deadline, nil)
			must(b, err)
			records += len(page.Accounts)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-begun)/float64(records), "CPU-ns/record")
}
