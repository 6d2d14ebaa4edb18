package rpc

import (
	"maps"
	"slices"
	"testing"

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

// holding returns the data of a token account.
func holding(mint, wallet ledger.Pubkey, amount uint64, delegate ledger.Opt[ledger.Pubkey]) []byte {
	details := ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized, Delegate: delegate})
	return agavetest.TokenData(&ledger.TokenAccount{Mint: mint, Owner: wallet, Amount: amount, Details: details})
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
	c := Config{}.withDefaults()
	l := newLearner(nil, &c, AccountsTouched)
	b := &ledger.Block{Slot: 1}
	for i := range maxWanted + 40 {
		b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: ledgertest.Key(i), Lamports: 1})
	}
	l.note(b)
	ledgertest.Equal(t, len(l.wanted), maxWanted, "accounts that are wanted")
	for i := range b.Accounts {
		l.learned(&b.Accounts[i])
	}
	ledgertest.Equal(t, len(l.known), 40, "accounts that are known once more came than may be")
	l.learned(&ledger.AccountWrite{Pubkey: ledgertest.Key(maxWanted)})
	ledgertest.Equal(t, len(l.known), 39, "accounts that are known, without one that is closed")
}
