package rpc

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// stateAfter applies what was emitted, as the engine does: base state waits until the chain has come to where it stands.
func stateAfter(events []ledger.Event) map[ledger.Pubkey]*ledger.Account {
	held := map[ledger.Pubkey]*ledger.Account{}
	var waiting []*ledger.BaseState
	var tip ledger.Slot
	apply := func(list []ledger.AccountWrite, taught ledger.Provenance) {
		for i := range list {
			held[list[i].Pubkey] = ledger.Merge(held[list[i].Pubkey], &list[i], taught)
		}
	}
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.Block:
			apply(e.Accounts, ledger.BlockProvenance(e.Slot))
			tip = e.Slot
		case *ledger.BaseState:
			waiting = append(waiting, e)
		}
		waiting = slices.DeleteFunc(waiting, func(b *ledger.BaseState) bool {
			if b.After <= tip {
				apply(b.Accounts, ledger.BaseProvenance(b.Slot))
			}
			return b.After <= tip
		})
	}
	return held
}

// untilOwned is enough when it is known who owns an account.
func untilOwned(k ledger.Pubkey) func(*recorder) bool {
	return func(r *recorder) bool {
		a := stateAfter(r.events)[k]
		return a != nil && a.Known&ledger.FieldOwner != 0
	}
}

// holding returns the data of a token account.
func holding(mint, wallet ledger.Pubkey, amount uint64, delegate ledger.Opt[ledger.Pubkey]) []byte {
	details := ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized, Delegate: delegate})
	return agavetest.TokenData(&ledger.TokenAccount{Mint: mint, Owner: wallet, Amount: amount, Details: details})
}

// A block comes with what its accounts are. Blocks 11 to 13 touch the same accounts.
func TestWhichAccountsAreAskedFor(t *testing.T) {
	wallet, holder, gone := keyOf(1), keyOf(2), keyOf(3)
	for mode, want := range map[Accounts][3]int{
		AccountsTouched: {1, 3, 3},
		AccountsNew:     {1, 1, 3},
		AccountsNone:    {0, 0, 0},
	} {
		play(t, Config{Accounts: mode}, func(t *testing.T, n *fakeNode, s *Source) {
			n.prepare(10, 11, 12, 13)
			for slot := ledger.Slot(11); slot <= 13; slot++ {
				n.pay(slot, 500, wallet, holder, gone)
				after(t, time.Duration(slot-11)*2*time.Second, func() { n.confirm(slot) })
			}
			n.hold(wallet, 500, ledger.SystemProgram, nil)
			n.hold(holder, 500, ledger.TokenProgram, holding(keyOf(7), wallet, 5, ledger.Some(keyOf(8))))
			r := follow(t, s, at(10), untilSlot(13))
			if a := stateAfter(r.events)[wallet]; (a.Unknown() == 0) != (mode != AccountsNone) || a.Lamports != 500 {
				t.Errorf("%s: with the blocks the wallet comes as %+v", accountsNames[mode], a)
			}
			asked := map[ledger.Pubkey]int{}
			for _, keys := range n.asked {
				for _, k := range keys {
					asked[k]++
				}
			}
			ledgertest.Equal(t, [3]int{asked[wallet], asked[holder], asked[gone]}, want, "%s: asked", accountsNames[mode])
		})
	}
}

func TestCatchingUpAsksOnce(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		list := slots(11, 699)
		n.add(10, list...)
		for i, slot := range list {
			n.pay(slot, uint64(slot), keyOf(i), keyOf(1000))
			n.hold(keyOf(i), uint64(slot), ledger.SystemProgram, nil)
		}
		n.hold(keyOf(1000), 699, ledger.VoteProgram, nil)
		r := follow(t, s, at(10), func(r *recorder) bool { return len(r.events) == len(list)+7 })
		wantChain(t, r)
		ledgertest.Equal(t, len(n.asked), 7, "calls for 690 accounts, 100 at once")
		for k, a := range stateAfter(r.events) {
			ledgertest.Equal(t, a.Unknown(), 0, "what is unknown of %v: %+v", k, a)
		}
	})
}

// A block does not wait long for a node that cannot tell its accounts; they are asked for later.
func TestAccountsThatCannotBeHadHoldNothingUp(t *testing.T) {
	for name, fault := range map[string]answer{
		"limited":   says(429, "", "Retry-After", "1"),
		"failed":    says(500, ""),
		"slow":      nil,
		"old":       fails(-32016),
		"not asked": gives("{}"),
	} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			if name == "slow" {
				fault = func(*fakeCall) bool {
					n.unlocked(func() { time.Sleep(9 * time.Second) })
					return true
				}
			}
			n.add(10, 11)
			k := keyOf(1)
			n.pay(11, 500, k)
			n.hold(k, 500, ledger.VoteProgram, nil)
			n.fault = on("getMultipleAccounts", times(3, fault))
			begun := time.Now()
			go n.goOn(11, 1000)
			r := follow(t, s, at(10), func(r *recorder) bool {
				if b, ok := last[*ledger.Block](r); ok {
					if late := time.Since(begun) - time.Duration(b.Slot-11)*400*time.Millisecond; late > 6*time.Second {
						t.Errorf("%s: block %d is %v late", name, b.Slot, late)
					}
				}
				return untilOwned(k)(r)
			})
			if a := stateAfter(r.events)[k]; a.Lamports != 500 || a.Owner != ledger.VoteProgram {
				t.Errorf("%s: got %+v", name, a)
			}
		})
	}
}

// Of accounts that are listed for themselves only those are asked for, and the mints of token accounts among them.
func TestOnlyWhatMayBeHeldIsAskedFor(t *testing.T) {
	held, other, mint, otherMint, program := keyOf(1), keyOf(2), keyOf(3), keyOf(4), keyOf(5)
	b := &ledger.Block{Slot: 1, Mints: []ledger.MintWrite{{Pubkey: mint}, {Pubkey: otherMint}}, Accounts: []ledger.AccountWrite{
		{Pubkey: held, Lamports: 1, Known: ledger.FieldToken, Token: &ledger.TokenAccount{Mint: mint}},
		{Pubkey: other, Lamports: 1, Known: ledger.FieldToken, Token: &ledger.TokenAccount{Mint: otherMint}},
	}}
	all := []ledger.Pubkey{held, other, mint, otherMint}
	for name, tt := range map[string]struct {
		filter *ledger.Filter
		want   []ledger.Pubkey
	}{
		"no filter":                 {nil, all},
		"of a program":              {ledger.NewFilter([]ledger.Pubkey{program}, nil), all},
		"of a program and listed":   {ledger.NewFilter([]ledger.Pubkey{program}, []ledger.Pubkey{held}), all},
		"listed":                    {ledger.NewFilter(nil, []ledger.Pubkey{held}), []ledger.Pubkey{held, mint}},
		"listed, and not touched":   {ledger.NewFilter(nil, []ledger.Pubkey{program}), nil},
		"listed, and only its mint": {ledger.NewFilter(nil, []ledger.Pubkey{otherMint}), []ledger.Pubkey{otherMint}},
	} {
		c := Config{Filter: tt.filter}.withDefaults()
		l := newLearner(nil, &c, AccountsTouched)
		l.note(b)
		got := slices.SortedFunc(maps.Keys(l.wanted), func(a, b ledger.Pubkey) int { return a.Compare(&b) })
		ledgertest.Equal(t, ledger.JoinKeys(got), ledger.JoinKeys(tt.want), "%s: the accounts that are asked for", name)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := newRecentAccounts(100)
	kept := keyOf(50_000)
	for i := range 10_000 {
		m.put(keyOf(i), plain)
		if i == 0 {
			m.put(kept, token)
		}
		if m.get(kept) != token {
			t.Fatalf("what is asked for all the time was forgotten after %d", i)
		}
	}
	if n := len(m.young) + len(m.old); n > 100 {
		t.Errorf("%d are remembered", n)
	}
	m.forget(kept)
	ledgertest.Equal(t, m.get(kept), unknown, "what was forgotten")

	c := Config{Logger: slog.New(slog.DiscardHandler)}.withDefaults()
	l := newLearner(nil, &c, AccountsTouched)
	b := &ledger.Block{Slot: 1}
	for i := range maxWanted + 40 {
		key := ledger.Pubkey{byte(i), byte(i >> 8), byte(i >> 16)}
		b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: key, Lamports: 1})
	}
	if l.note(b); len(l.wanted) != maxWanted || l.forgotten != 40 {
		t.Errorf("%d are wanted, %d forgotten", len(l.wanted), l.forgotten)
	}
}
