package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
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

// run returns all events of a run that ends by itself.
func run(t testing.TB, spec string, from *ledger.ResumePoint) []ledger.Event {
	t.Helper()
	var events []ledger.Event
	err := open(t, spec).Run(t.Context(), from, func(_ context.Context, e ledger.Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		t.Fatalf("Run of %q: %v", spec, err)
	}
	return events
}

// slotOf returns the slot of an event and whether base state is the event.
func slotOf(e ledger.Event) (slot ledger.Slot, base bool) {
	switch e := e.(type) {
	case *ledger.Block:
		return e.Slot, false
	case *ledger.SlotStatus:
		return e.Slot, false
	case *ledger.BaseState:
		return e.Slot, true
	}
	panic("unknown event")
}

// book is a ledger's state kept the plain way: every account that exists, merged from
// base state and the blocks of one chain.
type book struct {
	accounts map[ledger.Pubkey]*ledger.Account
	mints    map[ledger.Pubkey]ledger.Mint // as taught; they outlive their accounts
	block    *ledger.Block                 // the newest
}

func newBook() *book {
	return &book{accounts: make(map[ledger.Pubkey]*ledger.Account), mints: make(map[ledger.Pubkey]ledger.Mint)}
}

// after returns the state after a block on top of b.
func (b *book) after(block *ledger.Block) *book {
	next := &book{maps.Clone(b.accounts), maps.Clone(b.mints), block}
	next.apply(block.Accounts, ledger.BlockProvenance(block.Slot))
	return next
}

func (b *book) apply(writes []ledger.AccountWrite, taught ledger.Provenance) {
	for i := range writes {
		w := &writes[i]
		if a := ledger.Merge(b.accounts[w.Pubkey], w, taught); a != nil && a.Exists() {
			b.accounts[w.Pubkey] = a
		} else {
			delete(b.accounts, w.Pubkey)
		}
		if w.Mint != nil {
			var before *ledger.Mint
			if m, ok := b.mints[w.Pubkey]; ok {
				before = &m
			}
			b.mints[w.Pubkey] = *ledger.MergeMint(before, *w.Mint, taught)
		}
	}
}

// resumePoint returns b as a restarted sequencer would hand it over.
func (b *book) resumePoint() *ledger.ResumePoint {
	return &ledger.ResumePoint{
		Slot: b.block.Slot, Blockhash: b.block.Blockhash, Height: b.block.Height,
		Accounts: func(visit func(*ledger.Account) bool) error {
			keys := slices.SortedFunc(maps.Keys(b.accounts), func(x, y ledger.Pubkey) int { return x.Compare(&y) })
			for _, k := range keys {
				if !visit(b.accounts[k]) {
					return nil
				}
			}
			return nil
		},
		Mints: func(visit func(ledger.Pubkey, ledger.Mint) bool) error {
			for k, m := range b.mints {
				if !visit(k, m) {
					return nil
				}
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

// books folds events, forks included, and returns the state after each block in the order
// the blocks came. It fails where a block's parent was never seen.
func books(t *testing.T, events []ledger.Event) []*book {
	t.Helper()
	var all []*book
	byHash := make(map[ledger.Hash]*book)
	genesis := newBook()
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.BaseState:
			genesis.apply(e.Accounts, ledger.BaseProvenance(e.Slot))
		case *ledger.Block:
			parent := byHash[e.PreviousBlockhash.Value]
			if parent == nil && e.Slot == firstSlot {
				parent = genesis
			}
			if parent == nil {
				t.Fatalf("slot %d: the parent %s was never seen", e.Slot, e.PreviousBlockhash.Value)
			}
			next := parent.after(e)
			byHash[e.Blockhash] = next
			all = append(all, next)
		}
	}
	return all
}

// encode returns events in the shared codec, one piece each.
func encode(events []ledger.Event) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = codec.AppendEvent(nil, e)
	}
	return out
}

// sameEvents fails at the first event that differs.
func sameEvents(t *testing.T, what string, got, want []ledger.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d events, want %d", what, len(got), len(want))
	}
	g, w := encode(got), encode(want)
	for i := range g {
		if !bytes.Equal(g[i], w[i]) {
			t.Fatalf("%s: event %d differs:\ngot  %+v\nwant %+v", what, i, got[i], want[i])
		}
	}
}

const lively = "accounts=200,tps=40,slot_time=0,fork_rate=0.2,skip_rate=0.2,finality=8,slots=200"

func TestTwoRunsEmitTheSameBytes(t *testing.T) {
	sameEvents(t, lively, run(t, lively, nil), run(t, lively, nil))
	zipf := lively + ",zipf=1.2"
	sameEvents(t, zipf, run(t, zipf, nil), run(t, zipf, nil))
}

func TestAShorterRunIsAPrefix(t *testing.T) {
	long := run(t, "accounts=200,slot_time=0,slots=120", nil)
	short := run(t, "accounts=200,slot_time=0,slots=70", nil)
	sameEvents(t, "prefix", short, long[:len(short)])
}

func TestSeedChangesEverything(t *testing.T) {
	a, b := run(t, lively, nil), run(t, lively+",seed=2", nil)
	keys := make(map[ledger.Pubkey]bool)
	for _, acc := range books(t, a)[0].accounts {
		keys[acc.Pubkey] = true
	}
	shared := 0
	for k := range books(t, b)[0].accounts {
		if keys[k] {
			shared++
		}
	}
	if want := len(programKeys) + 1; shared != want {
		t.Errorf("two seeds share %d accounts, want the %d that all ledgers have", shared, want)
	}
}

func TestResumeGoesOnAsIfNothingHadHappened(t *testing.T) {
	for _, spec := range []string{lively, "accounts=150,slot_time=0,fork_rate=0.25,skip_rate=0.3,finality=0,zipf=1.3,votes=1,slots=90"} {
		straight := run(t, spec, nil)
		encoded := encode(straight)
		final := make(map[ledger.Hash]bool)
		for _, e := range straight {
			if s, ok := e.(*ledger.SlotStatus); ok && s.Status == ledger.StatusFinalized {
				final[s.Blockhash.Value] = true
			}
		}
		resumed := 0
		for _, b := range books(t, straight) {
			if final[b.block.Blockhash] {
				resumed++
				checkResume(t, spec, b, straight, encoded)
			}
		}
		if resumed < 30 {
			t.Errorf("%s: only %d finalized blocks to resume from", spec, resumed)
		}
	}
}

// checkResume compares the slots after b, some forks on, with those of the straight run.
func checkResume(t *testing.T, spec string, b *book, straight []ledger.Event, encoded [][]byte) {
	t.Helper()
	source := open(t, spec)
	first, last := b.block.Slot+1, min(b.block.Slot+40, ledger.Slot(source.params.slots))
	source.params.slots = uint64(last)
	var want [][]byte
	blocks := 0 // from first to last
	for i, e := range straight {
		slot, base := slotOf(e)
		if !base && slot >= first {
			want = append(want, encoded[i])
		}
		if _, ok := e.(*ledger.Block); ok && slot >= first && slot <= last {
			blocks++
		}
	}
	n := 0
	err := source.Run(t.Context(), b.resumePoint(), func(_ context.Context, e ledger.Event) error {
		if n == len(want) || !bytes.Equal(codec.AppendEvent(nil, e), want[n]) {
			return fmt.Errorf("event %d after slot %d differs: %+v", n, b.block.Slot, e)
		}
		if _, ok := e.(*ledger.Block); ok {
			blocks--
		}
		n++
		return nil
	})
	if err != nil || blocks != 0 {
		t.Fatalf("%s: resumed after slot %d: %d blocks missing after %d events, %v", spec, b.block.Slot, blocks, n, err)
	}
}

func TestResumeRefusesAnotherLedger(t *testing.T) {
	const spec = "accounts=200,slot_time=0,fork_rate=0.25,skip_rate=0.3,slots=40"
	all := books(t, run(t, spec, nil))
	good := all[0]
	change := func(mutate func(*ledger.ResumePoint)) *ledger.ResumePoint {
		p := good.resumePoint()
		mutate(p)
		return p
	}
	with := func(f func(*book)) *ledger.ResumePoint {
		b := &book{maps.Clone(good.accounts), maps.Clone(good.mints), good.block}
		f(b)
		return b.resumePoint()
	}
	var offChain ledger.Slot
	sched := newSchedule(&open(t, spec).params, 2)
	for offChain = firstSlot; sched.kind(offChain) != branchBlock; offChain++ {
	}
	wallet := open(t, spec).layout.key(open(t, spec).layout.wallets.first)
	broken := errors.New("disk on fire")
	tests := map[string]*ledger.ResumePoint{
		"before the first block": change(func(p *ledger.ResumePoint) { p.Slot = 0 }),
		"on an abandoned branch": change(func(p *ledger.ResumePoint) { p.Slot = offChain }),
		"without height":         change(func(p *ledger.ResumePoint) { p.Height.Known = false }),
		"a stranger": with(func(b *book) {
			k := ledger.Pubkey(sha256.Sum256(nil))
			b.accounts[k] = &ledger.Account{Pubkey: k, Lamports: 1}
		}),
		"a wallet less":     with(func(b *book) { delete(b.accounts, wallet) }),
		"a lamport too few": with(func(b *book) { a := *b.accounts[wallet]; a.Lamports--; b.accounts[wallet] = &a }),
		"unreadable": change(func(p *ledger.ResumePoint) {
			p.Accounts = func(func(*ledger.Account) bool) error { return broken }
		}),
	}
	for name, from := range tests {
		err := open(t, spec).Run(t.Context(), from, func(context.Context, ledger.Event) error {
			t.Errorf("%s: something was emitted", name)
			return nil
		})
		if err == nil {
			t.Errorf("%s: Run resumed", name)
		}
		if name == "unreadable" && !errors.Is(err, broken) {
			t.Errorf("%s: err = %v, want it to wrap %v", name, err, broken)
		}
	}
}

func TestSamplesExistFromGenesisOn(t *testing.T) {
	samples := open(t, lively).Samples()
	if len(samples) != 3 {
		t.Fatalf("%d samples, want 3", len(samples))
	}
	for _, b := range books(t, run(t, lively, nil)) {
		busy, holder, mint := b.accounts[samples[0]], b.accounts[samples[1]], b.accounts[samples[2]]
		if busy == nil || busy.Owner != ledger.SystemProgram || holder == nil || holder.Owner != ledger.SystemProgram {
			t.Fatalf("slot %d: a sample is no wallet: %+v %+v", b.block.Slot, busy, holder)
		}
		if mint == nil || !ledger.IsTokenProgram(mint.Owner) {
			t.Fatalf("slot %d: the sample mint is none: %+v", b.block.Slot, mint)
		}
		held := 0
		for _, a := range b.accounts {
			if a.Token != nil && a.Token.Owner == samples[1] {
				held++
			}
		}
		if held == 0 {
			t.Fatalf("slot %d: the sample wallet holds no tokens", b.block.Slot)
		}
	}
}

func TestBaseStateIsAllAccountsInBoundedEvents(t *testing.T) {
	for _, accounts := range []int{100, 101, 499, 1777, 10001} {
		var keys []ledger.Pubkey
		wallets := 0
		for _, e := range run(t, fmt.Sprintf("accounts=%d,slots=1,slot_time=0", accounts), nil) {
			base, ok := e.(*ledger.BaseState)
			if !ok {
				break
			}
			if len(base.Accounts) > baseAccounts || base.Slot != 0 {
				t.Errorf("base state of %d accounts at slot %d", len(base.Accounts), base.Slot)
			}
			for _, a := range base.Accounts {
				if a.Lamports == 0 || a.Known != ledger.FieldsAll {
					t.Fatalf("account in base state is not whole: %+v", a)
				}
				if a.Owner == ledger.SystemProgram {
					wallets++
				}
				keys = append(keys, a.Pubkey)
			}
		}
		slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
		if got := len(slices.Compact(keys)); got != accounts {
			t.Errorf("%d distinct accounts at genesis, want %d", got, accounts)
		}
		if 2*wallets < accounts {
			t.Errorf("%d of %d accounts are wallets, want at least half", wallets, accounts)
		}
	}
}
