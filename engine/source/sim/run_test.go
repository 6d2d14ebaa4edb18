package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// open returns the source of a specification that is right.
func open(t testing.TB, spec string) *Source {
	t.Helper()
	s, err := Open(spec)
	if err != nil {
		t.Fatalf("Open(%q): %v", spec, err)
	}
	return s
}

// visit runs a specification to its end.
func visit(t testing.TB, spec string, from *ledger.ResumePoint, visit func(ledger.Event)) {
	t.Helper()
	err := open(t, spec).Run(t.Context(), from, func(_ context.Context, e ledger.Event) error {
		visit(e)
		return nil
	})
	if err != nil {
		t.Fatalf("Run of %q: %v", spec, err)
	}
}

// run returns all events of a run that ends by itself.
func run(t testing.TB, spec string, from *ledger.ResumePoint) (events []ledger.Event) {
	t.Helper()
	visit(t, spec, from, func(e ledger.Event) { events = append(events, e) })
	return events
}

func slotOf(e ledger.Event) ledger.Slot {
	switch e := e.(type) {
	case *ledger.Block:
		return e.Slot
	case *ledger.SlotStatus:
		return e.Slot
	}
	return 0 // base state
}

// book is a ledger's state kept the plain way: every account that exists, merged from
// base state and the blocks of one chain.
type book struct {
	accounts map[ledger.Pubkey]*ledger.Account
	mints    map[ledger.Pubkey]ledger.Mint // as taught; they outlive their accounts
	block    *ledger.Block                 // the newest
}

func (b *book) apply(writes []ledger.AccountWrite, taught ledger.Provenance) {
	for _, w := range writes {
		if a := ledger.Merge(b.accounts[w.Pubkey], &w, taught); a != nil && a.Exists() {
			b.accounts[w.Pubkey] = a
		} else {
			delete(b.accounts, w.Pubkey)
		}
		if w.Mint != nil {
			was := b.mints[w.Pubkey]
			b.mints[w.Pubkey] = *ledger.MergeMint(&was, *w.Mint, taught)
		}
	}
}

// resumePoint returns b as a restarted sequencer would hand it over.
func (b *book) resumePoint() *ledger.ResumePoint {
	return &ledger.ResumePoint{
		Slot: b.block.Slot, Blockhash: b.block.Blockhash, Height: b.block.Height,
		Visit: func(account func(*ledger.Account) bool, mint func(*ledger.MintWrite) bool) error {
			maps.Values(b.accounts)(account) // in no order: nothing depends on it
			for k, m := range b.mints {
				mint(&ledger.MintWrite{Pubkey: k, Mint: m})
			}
			return nil
		},
	}
}

func (b *book) stateHash() (sum ledger.StateHash) {
	for _, a := range b.accounts {
		sum.Add(a.StateTerm())
	}
	for k, m := range b.mints {
		if b.accounts[k] != nil {
			sum.Add(m.StateTerm(k))
		}
	}
	return sum
}

// books folds events, forks included, and returns the state at genesis and then that after each block, in the order
// the blocks came.
func books(events []ledger.Event) []*book {
	genesis := &book{make(map[ledger.Pubkey]*ledger.Account), make(map[ledger.Pubkey]ledger.Mint), &ledger.Block{Slot: firstSlot - 1}}
	all := []*book{genesis}
	byHash := make(map[ledger.Hash]*book)
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.BaseState:
			genesis.apply(e.Accounts, ledger.BaseProvenance(e.Slot))
		case *ledger.Block:
			parent := byHash[e.PreviousBlockhash.Value]
			if e.Slot == firstSlot {
				parent = genesis
			}
			next := &book{maps.Clone(parent.accounts), maps.Clone(parent.mints), e}
			next.apply(e.Accounts, ledger.BlockProvenance(e.Slot))
			byHash[e.Blockhash] = next
			all = append(all, next)
		}
	}
	return all
}

const lively = "accounts=200,tps=40,slot_time=0,fork_rate=0.2,skip_rate=0.2,finality=8,slots=200"

func TestResumeGoesOnAsIfNothingHadHappened(t *testing.T) {
	for _, spec := range []string{lively, "accounts=150,slot_time=0,fork_rate=0.25,skip_rate=0.3,finality=0,zipf=1.3,votes=1,slots=90,pools=3"} {
		straight := run(t, spec, nil)
		final := make(map[ledger.Hash]bool)
		for _, e := range straight {
			if s, ok := e.(*ledger.SlotStatus); ok && s.Status == ledger.StatusFinalized {
				final[s.Blockhash.Value] = true
			}
		}
		resumed := 0
		for i, b := range books(straight) {
			if i%ledgertest.Sample(1, 8, 24) != 0 || !final[b.block.Blockhash] {
				continue
			}
			resumed++
			shown := func(e ledger.Event) bool { return slotOf(e) <= b.block.Slot }
			got, want := run(t, spec, b.resumePoint()), slices.DeleteFunc(slices.Clone(straight), shown)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: resumed after slot %d: %d events, want %d, and the same", spec, b.block.Slot, len(got), len(want))
			}
		}
		if resumed < 2 {
			t.Errorf("%s: only %d finalized blocks to resume from", spec, resumed)
		}
	}
}

func TestResumeRefusesAnotherLedger(t *testing.T) {
	const spec = "accounts=200,slot_time=0,fork_rate=0.25,skip_rate=0.3,slots=40"
	offChain := firstSlot
	for sched := newSchedule(&open(t, spec).params, 2); sched.kind(offChain) != branchBlock; offChain++ {
	}
	stranger, wallet := ledger.Pubkey{9}, open(t, spec).layout.key(open(t, spec).layout.wallets.first)
	broken := errors.New("disk on fire")
	for name, change := range map[string]func(p *ledger.ResumePoint, b *book){
		"before the first block": func(p *ledger.ResumePoint, _ *book) { p.Slot = 0 },
		"on an abandoned branch": func(p *ledger.ResumePoint, _ *book) { p.Slot = offChain },
		"without height":         func(p *ledger.ResumePoint, _ *book) { p.Height.Known = false },
		"a stranger":             func(_ *ledger.ResumePoint, b *book) { b.accounts[stranger] = &ledger.Account{Pubkey: stranger} },
		"a wallet less":          func(_ *ledger.ResumePoint, b *book) { delete(b.accounts, wallet) },
		"a lamport too few":      func(_ *ledger.ResumePoint, b *book) { b.accounts[wallet].Lamports-- },
		"unreadable": func(p *ledger.ResumePoint, _ *book) {
			p.Visit = func(func(*ledger.Account) bool, func(*ledger.MintWrite) bool) error { return broken }
		},
	} {
		b := books(run(t, spec, nil))[1]
		from := b.resumePoint()
		change(from, b)
		err := open(t, spec).Run(t.Context(), from, func(context.Context, ledger.Event) error {
			t.Errorf("%s: something was emitted", name)
			return nil
		})
		if err == nil || name == "unreadable" && !errors.Is(err, broken) {
			t.Errorf("%s: Run: %v", name, err)
		}
	}
}

func TestSamplesExistFromGenesisOn(t *testing.T) {
	samples := open(t, lively).Samples()
	for _, b := range books(run(t, lively, nil)) {
		for i, isOf := range []func(ledger.Pubkey) bool{isSystem, isSystem, ledger.IsTokenProgram} {
			if a := b.accounts[samples[i]]; a == nil || !isOf(a.Owner) {
				t.Fatalf("slot %d: sample %d is %+v", b.block.Slot, i, a)
			}
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(b.accounts)), func(a *ledger.Account) bool {
			return a.Token != nil && a.Token.Owner == samples[1]
		}) {
			t.Fatalf("slot %d: the sample wallet holds no tokens", b.block.Slot)
		}
	}
}

func isSystem(owner ledger.Pubkey) bool { return owner == ledger.SystemProgram }

func TestBaseStateIsAllAccountsInBoundedEvents(t *testing.T) {
	for _, accounts := range []int{100, 101, 499, 1777, 10001} {
		keys := make(map[ledger.Pubkey]bool)
		wallets := 0
		_, err := open(t, fmt.Sprintf("accounts=%d", accounts)).begin(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
			base := e.(*ledger.BaseState)
			if n := len(base.Accounts); n == 0 || n > baseAccounts || base.Slot != 0 {
				t.Errorf("base state of %d accounts at slot %d", n, base.Slot)
			}
			for _, a := range base.Accounts {
				if a.Lamports == 0 || a.Known != ledger.FieldsAll {
					t.Fatalf("account in base state is not whole: %+v", a)
				}
				if isSystem(a.Owner) {
					wallets++
				}
				keys[a.Pubkey] = true
			}
			return nil
		})
		if err != nil || len(keys) != accounts || 2*wallets < accounts {
			t.Errorf("%d distinct accounts at genesis, of which %d are wallets, %v; want %d, at least half of them wallets",
				len(keys), wallets, err, accounts)
		}
	}
}
