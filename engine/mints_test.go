package engine

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// TestMintsAreThoseOfTheirVersion asks for mints before and after blocks that teach, change and close one, and
// after a fork undid the close.
func TestMintsAreThoseOfTheirVersion(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 3})
		defer n.mustStop()
		taught := func(k ledger.Pubkey, decimals uint8, supply uint64) ledger.AccountWrite {
			w := owned(k, 5, ledger.TokenProgram)
			w.Mint = &ledger.Mint{Decimals: decimals, Supply: ledger.Some(supply)}
			return w
		}
		kept, closed := key(1), key(2)
		root := rootBlock(100, taught(kept, 6, 10))
		teaches := child(root, 101, 0, taught(closed, 9, 20))
		changes := child(teaches, 102, 0, taught(kept, 6, 11))
		closes := child(changes, 103, 0, lamports(closed, 0))
		undoes := child(changes, 104, 1)

		type supplies [2]ledger.Opt[uint64] // of kept and closed, unknown where nothing is known of the mint
		tests := []struct {
			name  string
			block *ledger.Block
			want  supplies
			head  *ledger.Head
		}{
			{"one is known", root, supplies{ledger.Some(uint64(10))}, nil},
			{"another one is taught", teaches, supplies{ledger.Some(uint64(10)), ledger.Some(uint64(20))}, nil},
			{"the supply changed", changes, supplies{ledger.Some(uint64(11)), ledger.Some(uint64(20))}, nil},
			{"one is closed", closes, supplies{ledger.Some(uint64(11))}, nil},
			{"the close is undone", undoes, supplies{ledger.Some(uint64(11)), ledger.Some(uint64(20))}, nil},
		}
		ask := func(name string, head, view *ledger.Head, want supplies) {
			all, v, err := n.Mints(ledger.Query{Head: head}, []ledger.Pubkey{key(3), closed, kept, closed})
			if err != nil || v.Head != view || len(all) != 4 || all[0] != nil {
				t.Fatalf("%s: %v, %v at %+v", name, all, err, v.Head)
			}
			for i, at := range []int{2, 1} {
				m := all[at]
				if want[i].Known != (m != nil) || m != nil && m.Supply != want[i] {
					t.Errorf("%s: mint %d: got %+v, want supply %v", name, i, m, want[i])
				}
			}
			if (all[1] == nil) != (all[3] == nil) {
				t.Errorf("%s: the same key twice: %v and %v", name, all[1], all[3])
			}
		}
		for i := range tests {
			tt := &tests[i]
			n.send(tt.block)
			tt.head = n.Head()
			ask(tt.name, nil, tt.head, tt.want)
		}
		for _, tt := range tests {
			ask(tt.name+", asked later", tt.head, tt.head, tt.want)
		}
	})
}

// TestFactsOfMintsObeyTheRulesOfBaseState teaches facts of a mint in parts, the newer ones first.
func TestFactsOfMintsObeyTheRulesOfBaseState(t *testing.T) {
	mint := func(decimals int) ledger.AccountWrite { // fewer than 0: it is none
		w := owned(key(1), 5, ledger.TokenProgram)
		if decimals >= 0 {
			w.Mint = &ledger.Mint{Decimals: uint8(decimals)}
		}
		return w
	}
	base := func(slot ledger.Slot, writes ...ledger.AccountWrite) *ledger.BaseState {
		return &ledger.BaseState{Slot: slot, Accounts: writes}
	}
	root := rootBlock(9)
	known := mint(6)
	known.Mint.Supply = ledger.Some(uint64(10))
	tests := map[string]struct {
		events []ledger.Event
		want   ledger.Opt[uint8] // unknown: there is no such mint
	}{
		"base state before the block":    {[]ledger.Event{rootBlock(9, mint(6)), base(8, mint(3))}, ledger.Some(uint8(6))},
		"two base states, newer first":   {[]ledger.Event{base(9, mint(6)), base(8, mint(3)), root}, ledger.Some(uint8(6))},
		"a block says it is no mint":     {[]ledger.Event{base(8, known), rootBlock(9, mint(-1)), base(8, mint(3))}, ledger.Opt[uint8]{}},
		"a block always said it is none": {[]ledger.Event{rootBlock(9, mint(-1)), base(8, mint(3))}, ledger.Opt[uint8]{}},
		"apart from the account": {[]ledger.Event{rootBlock(9, mint(-1)),
			&ledger.BaseState{Slot: 8, Mints: []ledger.MintWrite{{Pubkey: key(1), Mint: *mint(3).Mint}}}}, ledger.Opt[uint8]{}},
		"newer base state": {[]ledger.Event{rootBlock(9, mint(-1)), base(10, mint(3))}, ledger.Some(uint8(3))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t, live(), Config{Shards: 3})
				defer n.mustStop()
				n.send(tt.events...)
				all, _, err := n.Mints(ledger.Query{}, []ledger.Pubkey{key(1)})
				if err != nil || tt.want.Known != (all[0] != nil) || tt.want.Known && all[0].Decimals != tt.want.Value {
					t.Errorf("got %+v, %v, want decimals %v", all[0], err, tt.want)
				}
			})
		})
	}
}
