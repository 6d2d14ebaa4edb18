package shard

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seeded, key, heapBytes, cpuTime, must = ledgertest.Seeded, ledgertest.Key, ledgertest.HeapBytes, ledgertest.CPUTime, ledgertest.Must

func compareKeys(a, b ledger.Pubkey) int { return a.Compare(&b) }

func owned(k ledger.Pubkey, amount ledger.Lamports, owner ledger.Pubkey) ledger.AccountWrite {
	return ledger.AccountWrite{Pubkey: k, Lamports: amount, Owner: owner, Known: ledger.FieldsAll}
}

func lamports(k ledger.Pubkey, amount ledger.Lamports) ledger.AccountWrite {
	return owned(k, amount, ledger.SystemProgram)
}

// lamportsOf returns a write of so many lamports to each of the first keys.
func lamportsOf(keys int, amount ledger.Lamports) (writes []ledger.AccountWrite) {
	for i := range keys {
		writes = append(writes, lamports(key(i), amount))
	}
	return writes
}

// start runs one shard of one until the test ends.
func start(t testing.TB) *Shard { return run(t, New(0, 1)) }

// run runs s until the test ends.
func run(t testing.TB, s *Shard) *Shard {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		ledgertest.ErrorIs(t, <-ended, nil, "Run")
	})
	return s
}

// applyBlock applies a block of these writes as version v, at the slot of the same number.
func applyBlock(t testing.TB, s *Shard, v ledger.Version, writes ...ledger.AccountWrite) *Applied {
	t.Helper()
	b := &ledger.Block{Slot: ledger.Slot(v), ParentSlot: ledger.Slot(v) - 1, Accounts: writes}
	return wait(t, s.ApplyBlock(Point{Version: v}, b))
}

// block is the work of a block of these writes as version v.
func (s *Shard) block(v ledger.Version, writes []ledger.AccountWrite) *apply {
	return s.newApply(Point{Version: v}, ledger.BlockProvenance(ledger.Slot(v)), writes, nil)
}

func wait[R any](t testing.TB, task *reply[R]) *R {
	t.Helper()
	done, err := task.Wait()
	must(t, err)
	return done
}

// soon is a deadline that only a broken shard misses.
func soon() time.Time { return time.Now().Add(time.Minute) }
