package snapshot

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

const benchAccounts = 1_000_000

// benchState returns a million accounts as a busy ledger holds them, half of them token
// accounts.
var benchState = sync.OnceValue(func() *state {
	random := rand.New(rand.NewPCG(1, 2))
	st := testState(20, 0, 0, 0)
	for i := range benchAccounts {
		a := &ledger.Account{Pubkey: testKey(i), Lamports: ledger.Lamports(random.Uint64N(1 << 40)), RentEpoch: 1<<64 - 1,
			Known: ledger.FieldsAll &^ ledger.FieldMint, Provenance: ledger.BlockProvenance(ledger.Slot(250_000_000 + random.Uint64N(10_000)))}
		if i%2 == 0 {
			a.Lamports, a.Owner = 2_039_280, ledger.TokenProgram
			a.Token = &ledger.TokenAccount{Mint: testKey(-random.IntN(1000)), Owner: testKey(-1000 - i), Amount: random.Uint64N(1 << 40),
				Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})}
		}
		st.accounts = append(st.accounts, a)
	}
	st.settle()
	return st
})

// benchStore returns a store on the disk. report reports the figures of so many reads or writes of w.
func benchStore(b *testing.B) (s *Store, report func(w Written)) {
	s, err := OpenStore(vfs.Disk{}, b.TempDir(), quiet)
	must(b, err)
	b.ReportAllocs()
	return s, func(w Written) {
		b.ReportMetric(float64(benchAccounts)*float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
		b.ReportMetric(float64(w.Bytes)/benchAccounts, "bytes/account")
	}
}

// BenchmarkWrite writes, syncs and reads back, in two parts.
func BenchmarkWrite(b *testing.B) {
	st := benchState()
	parts := st.parts(2)
	s, report := benchStore(b)
	var w Written
	for b.Loop() {
		var err error
		w, err = s.Write(b.Context(), st.meta, parts, st.blocks, Pace{})
		must(b, err)
	}
	report(w)
}

// BenchmarkRead decodes all accounts in one goroutine.
func BenchmarkRead(b *testing.B) {
	s, report := benchStore(b)
	w := write(b, s, benchState())
	snap := newest(b, s)
	for b.Loop() {
		count := 0
		err := snap.Accounts(0, math.MaxUint64, func(*ledger.Account) bool { count++; return true })
		if err != nil || count != benchAccounts {
			b.Fatal(count, err)
		}
	}
	report(w)
}
