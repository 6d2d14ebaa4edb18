package fill

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var key = ledgertest.Key

func TestNegativeCacheIsBounded(t *testing.T) {
	f := New(Config{})
	r := ledgertest.Seeded(t, 1)
	for range 3 * maxNegative {
		f.addNegativeLocked(key(r.IntN(2*maxNegative)), absence{since: 7})
		if len(f.negative) > maxNegative {
			t.Fatalf("%d keys are remembered, want at most %d", len(f.negative), maxNegative)
		}
	}
}

// TestRecentWritesAreThoseOfTheNewestBlocks holds what is known of recent blocks, of which some are undone, against a list of
// all blocks.
func TestRecentWritesAreThoseOfTheNewestBlocks(t *testing.T) {
	r := ledgertest.Seeded(t, 1)
	var ring recentWrites
	var all []*ledger.Block
	horizon, last := ledger.Slot(0), ledger.Slot(100+3*maxRecentBlocks)
	for slot := ledger.Slot(100); slot < last; slot++ {
		b := &ledger.Block{Slot: slot}
		for range r.IntN(4) {
			b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: key(r.IntN(5)), Lamports: ledger.Lamports(r.IntN(2))})
		}
		ring.add(b)
		all = append(all, b)
		horizon = max(horizon, all[max(0, len(all)-1-maxRecentBlocks)].Slot)
		if len(all) > 9 && r.IntN(9) == 0 {
			all = all[:len(all)-r.IntN(9)]
			ring.rollBack(all[len(all)-1].Slot)
		}
		if slot%7 > 0 {
			continue
		}
		k, after := key(r.IntN(5)), horizon+ledger.Slot(r.IntN(int(slot-horizon)+1))
		wantAlive, wantClosed, keys := false, ledger.Slot(0), 0
		for _, b := range all {
			wrote := map[ledger.Pubkey]bool{}
			for _, w := range b.Accounts {
				wrote[w.Pubkey] = true
				switch {
				case b.Slot <= after || w.Pubkey != k:
				case w.Lamports == 0:
					wantClosed = b.Slot
				default:
					wantAlive = true
				}
			}
			if b.Slot > horizon || horizon == 100 {
				keys += len(wrote)
			}
		}
		if alive, closed := ring.after(after, k); alive != wantAlive || closed != wantClosed || ring.horizon != horizon || ring.keys != keys {
			t.Fatalf("slot %d, after %d: alive %v, closed at %d, horizon %d, %d keys; want %v, %d, %d, %d",
				slot, after, alive, closed, ring.horizon, ring.keys, wantAlive, wantClosed, horizon, keys)
		}
	}
	large := &ledger.Block{Slot: last}
	for n := range maxRecentKeys + 1 {
		large.Accounts = append(large.Accounts, ledger.AccountWrite{Pubkey: key(n)})
	}
	if ring.add(large); ring.keys != 0 || ring.horizon != last {
		t.Errorf("a block that wrote too much is said to be known: %d keys, from slot %d", ring.keys, ring.horizon)
	}
}
