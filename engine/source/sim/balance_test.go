package sim

import (
	"context"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// specs are ledgers of different temper; each is checked at every block of every branch.
var specs = []string{
	lively,
	"accounts=100,tps=300,slot_time=0,slots=100,votes=3,seed=3",
	"accounts=301,tps=100,slot_time=0,slots=150,zipf=1.5,fork_rate=0.25,seed=18446744073709551615",
	"accounts=150,tps=50,slot_time=0,slots=60,fail_rate=1",
}

func (b *book) lamports() (sum ledger.Lamports) {
	for _, a := range b.accounts {
		sum += a.Lamports
	}
	return sum
}

func TestBalancesAddUpAfterEveryBlockOfEveryBranch(t *testing.T) {
	for _, spec := range specs {
		source := open(t, spec)
		genesis := world{layout: source.layout, cells: make([]cell, source.layout.size())}
		genesis.fill()
		var want ledger.Lamports
		for r := range genesis.cells {
			want += ledger.Lamports(genesis.cells[r].lamports)
		}
		for _, b := range books(t, run(t, spec, nil)) {
			if got := b.lamports(); got != want {
				t.Fatalf("%s: slot %d: %d lamports in all, want %d", spec, b.block.Slot, got, want)
			}
			checkTokens(t, spec, b)
		}
	}
}

// checkTokens fails unless the supply of every mint is the sum of its holdings, every wrapped
// lamport is there, and only token accounts have token facts.
func checkTokens(t *testing.T, spec string, b *book) {
	t.Helper()
	held := make(map[ledger.Pubkey]uint64)
	for _, a := range b.accounts {
		if a.Token == nil {
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

// One transaction a block shows what each of them changes.
func TestATransactionChangesWhatItNames(t *testing.T) {
	s := open(t, "accounts=100,tps=1,slot_time=0,votes=0.2,fail_rate=0.2,skip_rate=0,slots=3000,fork_rate=0.1")
	failed := 0
	before := newBook()
	states := map[ledger.Hash]*book{}
	err := s.Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
		switch e := e.(type) {
		case *ledger.BaseState:
			before.apply(e.Accounts, ledger.BaseProvenance(e.Slot))
			states[genesisHash(&s.params)] = before
		case *ledger.Block:
			parent := states[e.PreviousBlockhash.Value]
			next := parent.after(e)
			states[e.Blockhash] = next
			if len(e.Transactions) == 1 && checkTransaction(t, parent, next) {
				failed++
			}
		}
		return nil
	})
	if err != nil || failed == 0 {
		t.Errorf("Run: %v; %d failed transactions seen", err, failed)
	}
}

// checkTransaction checks the one transaction of a block and reports whether it failed.
func checkTransaction(t *testing.T, parent, next *book) (failed bool) {
	t.Helper()
	b, tx := next.block, &next.block.Transactions[0]
	changed, outside := 0, 0
	for _, w := range b.Accounts {
		was, is := parent.accounts[w.Pubkey], next.accounts[w.Pubkey]
		if was != nil && is != nil && was.SameState(is) {
			continue
		}
		changed++
		if !slices.Contains(tx.Accounts, w.Pubkey) {
			outside++
		}
	}
	payer := tx.Accounts[0]
	fee := tx.Fee.Value
	switch {
	case changed < 2:
		t.Fatalf("slot %d: %+v changes %d accounts", b.Slot, tx, changed)
	case outside > 1: // the leader
		t.Fatalf("slot %d: %d changed accounts are not named by %+v", b.Slot, outside, tx)
	case fee != lamportsPerSignature && fee != 2*lamportsPerSignature:
		t.Fatalf("slot %d: fee %d", b.Slot, fee)
	case tx.Slot != b.Slot || tx.Index != 0 || tx.Time != b.Time:
		t.Fatalf("slot %d: %+v is not stamped as its block", b.Slot, tx)
	case tx.Success.Value:
		return false
	case changed != 2 || parent.accounts[payer].Lamports-next.accounts[payer].Lamports != fee:
		t.Fatalf("slot %d: the failed %+v changes %d accounts", b.Slot, tx, changed)
	}
	return true
}

// Over a long run everything the ledger can do has to happen.
func TestEverythingHappens(t *testing.T) {
	source := open(t, "accounts=400,tps=500,slot_time=0,fork_rate=0,skip_rate=0")
	w := newWorld(source.layout)
	w.fill()
	happenings := map[string]func(r ref, was, is cell) bool{
		"holding opened": func(r ref, was, is cell) bool { return w.isHolding(r) && !was.open() && is.open() },
		"holding closed": func(r ref, was, is cell) bool { return w.isHolding(r) && was.open() && !is.open() },
		"mint opened":    func(r ref, was, is cell) bool { return w.isMint(r) && !was.open() && is.open() },
		"mint closed":    func(r ref, was, is cell) bool { return w.isMint(r) && was.open() && !is.open() },
		"frozen":         func(_ ref, was, is cell) bool { return !was.frozen && is.frozen },
		"thawed":         func(_ ref, was, is cell) bool { return was.frozen && !is.frozen },
		"approved":       func(_ ref, was, is cell) bool { return was.delegate == 0 && is.delegate != 0 },
		"revoked":        func(_ ref, was, is cell) bool { return was.delegate != 0 && is.delegate == 0 && is.open() },
		"used by delegate": func(_ ref, was, is cell) bool {
			return is.delegate != 0 && is.delegate == was.delegate && is.delegated < was.delegated
		},
		"minted": func(r ref, was, is cell) bool { return w.isMint(r) && was.open() && is.amount > was.amount },
		"burned": func(r ref, was, is cell) bool { return w.isMint(r) && is.open() && is.amount < was.amount },
		"wrapped": func(r ref, was, is cell) bool {
			return w.isHolding(r) && w.mintOf(r) == w.mints.first && is.amount > was.amount
		},
		"Token-2022 moved": func(r ref, was, is cell) bool {
			return w.isHolding(r) && w.programOf(w.mintOf(r)) == token2022Program && is.amount < was.amount
		},
	}
	seen := make(map[string]int)
	c := &chain{producer: newProducer(&source.params, w)}
	before := slices.Clone(w.cells)
	for slot := firstSlot; slot <= 300; slot++ {
		c.next(slot)
		for r := range w.cells {
			for what, happened := range happenings {
				if before[r] != w.cells[r] && happened(ref(r), before[r], w.cells[r]) {
					seen[what]++
				}
			}
		}
		copy(before, w.cells)
	}
	for what := range happenings {
		if seen[what] < 10 {
			t.Errorf("%s: %d times in 300 slots", what, seen[what])
		}
	}
	open := 0
	for r := range w.cells {
		if w.cells[r].open() {
			open++
		}
	}
	if open < 380 || open > 430 {
		t.Errorf("%d accounts are open in the end, want about the 400 of the beginning", open)
	}
}
