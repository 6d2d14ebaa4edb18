package sim

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// specs are ledgers of different temper; each is checked at every block of every branch.
var specs = []string{
	lively,
	"accounts=100,tps=300,slot_time=0,slots=100,votes=3,seed=3",
	"accounts=301,tps=100,slot_time=0,slots=150,zipf=1.5,fork_rate=0.25,seed=18446744073709551615",
	"accounts=150,tps=50,slot_time=0,slots=60,fail_rate=1",
	"accounts=300,tps=200,slot_time=0,slots=100,pools=3,fork_rate=0.25",
}

func TestBalancesAddUpAfterEveryBlockOfEveryBranch(t *testing.T) {
	for _, spec := range specs {
		all := books(run(t, spec, nil))
		want := checkAccounts(t, spec, all[0])
		for _, b := range all {
			ledgertest.Equal(t, checkAccounts(t, spec, b), want, "%s: slot %d: lamports in all", spec, b.block.Slot)
		}
	}
}

// checkAccounts returns the lamports of all accounts. It fails unless the supply of every mint is the sum of its holdings,
// every wrapped lamport is there, and only token accounts have token facts.
func checkAccounts(t *testing.T, spec string, b *book) (lamports ledger.Lamports) {
	t.Helper()
	held := make(map[ledger.Pubkey]uint64)
	for _, a := range b.accounts {
		if lamports += a.Lamports; a.Token == nil {
			continue
		}
		details := a.Token.Details.Value
		if !ledger.IsTokenProgram(a.Owner) || b.accounts[a.Token.Mint] == nil || b.accounts[a.Token.Mint].Owner != a.Owner {
			t.Fatalf("%s: slot %d: %s is no holding of a mint of its program", spec, b.block.Slot, a.Pubkey)
		}
		if details.Delegate.Known != (details.DelegatedAmount != 0) {
			t.Fatalf("%s: slot %d: delegate and delegated amount disagree: %+v", spec, b.block.Slot, details)
		}
		if held[a.Token.Mint] += a.Token.Amount; a.Token.IsNative() && uint64(a.Lamports) != 2039280+a.Token.Amount {
			t.Fatalf("%s: slot %d: %d lamports wrap %d", spec, b.block.Slot, a.Lamports, a.Token.Amount)
		}
	}
	for key, m := range b.mints {
		if want := held[key]; b.accounts[key] != nil && key != ledger.NativeMint && m.Supply.Value != want {
			t.Fatalf("%s: slot %d: supply of %s is %d, its holdings have %d", spec, b.block.Slot, key, m.Supply.Value, want)
		}
	}
	return lamports
}

func TestWalletsAreNeverEmptied(t *testing.T) {
	source := open(t, "accounts=200,tps=2000,slot_time=0,zipf=1.5,fork_rate=0,skip_rate=0,fail_rate=0.3")
	w := newWorld(source.layout)
	w.fill()
	rich := &w.cells[w.identities.first]
	for r := w.wallets.first; r < w.wallets.end(); r++ {
		rich.lamports += w.cells[r].lamports - poorBelow
		w.cells[r].lamports = poorBelow
	}
	c := &chain{producer: newProducer(&source.params, w)}
	low := 0
	for slot := firstSlot; slot <= 100; slot++ {
		for _, write := range c.next(slot).Accounts {
			if write.Owner == ledger.SystemProgram && write.Lamports > 0 && write.Lamports < poorBelow {
				low++
			}
		}
		for r := w.wallets.first; r < w.identities.end(); r++ {
			if w.cells[r].lamports < poorBelow/2 {
				t.Fatalf("slot %d: wallet %d is left with %d lamports", slot, r, w.cells[r].lamports)
			}
		}
	}
	if low == 0 {
		t.Error("no wallet ever ran low: the test shows nothing")
	}
}
