package ledger

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// change is a write with its provenance.
type change struct {
	write AccountWrite
	from  Provenance
}

func byBlock(s Slot, w AccountWrite) change { return change{w, BlockProvenance(s)} }
func byBase(s Slot, w AccountWrite) change  { return change{w, BaseProvenance(s)} }

func merged(changes []change) *Account {
	var a *Account
	for i := range changes {
		a = Merge(a, &changes[i].write, changes[i].from)
	}
	return a
}

var (
	mintKey, otherMint = Pubkey{1, 1}, Pubkey{1, 2}
	wallet, newWallet  = Pubkey{2, 1}, Pubkey{2, 2}
)

// lamports is a write that shows the balance only, as blocks without account data do.
func lamports(n Lamports) AccountWrite { return AccountWrite{Lamports: n} }

// whole is a write that shows everything of an account without token facts.
func whole(n Lamports, owner Pubkey) AccountWrite {
	return AccountWrite{Lamports: n, Owner: owner, RentEpoch: 7, Executable: true, Known: FieldsAll}
}

// holding is a write of a token account with its data.
func holding(mint, owner Pubkey, amount uint64, d TokenDetails) AccountWrite {
	w := whole(2, TokenProgram)
	w.Token = &TokenAccount{Mint: mint, Owner: owner, Amount: amount, Details: Some(d)}
	return w
}

// balance is a write that knows a token balance only.
func balance(mint, owner Pubkey, amount uint64) AccountWrite {
	return AccountWrite{
		Lamports: 2, Owner: TokenProgram, Known: FieldOwner | FieldToken,
		Token: &TokenAccount{Mint: mint, Owner: owner, Amount: amount},
	}
}

// account is an account of which all is known, as whole writes it: the lamports of provenance p, the fields of another one.
func account(n Lamports, owner Pubkey, p, fields Provenance) *Account {
	a := &Account{Lamports: n, Owner: owner, RentEpoch: 7, Executable: true, Known: FieldsAll, Provenance: p}
	if fields != p {
		a.FieldProvenance = &FieldProvenance{fields, fields, fields, fields, fields}
	}
	return a
}

// bare is an account of which only the lamports are known.
func bare(n Lamports, p, since Provenance) *Account {
	return &Account{Lamports: n, Provenance: p, Since: since}
}

func TestWritesAreMerged(t *testing.T) {
	block, base := BlockProvenance, BaseProvenance
	vote, system := VoteProgram, SystemProgram
	opened := byBlock(5, lamports(9))
	wholly := byBlock(5, whole(9, vote))
	closed := byBlock(6, lamports(0))
	again := byBlock(8, lamports(0))
	tests := map[string]struct {
		want    *Account
		changes []change
	}{
		"a balance alone leaves the rest unknown": {bare(9, block(5), 0), []change{opened}},
		"a partial write keeps what it does not show": {
			account(8, vote, block(6), block(5)), []change{wholly, byBlock(6, lamports(8))},
		},
		"a whole write sets the provenance of all fields": {
			account(6, system, block(7), block(7)), []change{wholly, byBlock(6, lamports(8)), byBlock(7, whole(6, system))},
		},
		"of two writes in a block the later wins": {
			bare(8, block(5), 0), []change{opened, byBlock(5, lamports(8))},
		},
		"base state before any block is taken": {
			account(9, vote, base(5), base(5)), []change{byBase(5, whole(9, vote))},
		},
		"base state of the slot of a block does not override it": {
			account(9, vote, block(5), block(5)), []change{wholly, byBase(5, whole(1, system))},
		},
		"base state after a block overrides it": {
			account(1, system, base(6), base(6)), []change{wholly, byBase(6, whole(1, system))},
		},
		"base state before a block fills in what is unknown": {
			account(9, vote, block(5), base(3)), []change{opened, byBase(3, whole(1, vote))},
		},
		"of two base states the higher slot wins, whichever came first": {
			account(9, vote, base(6), base(6)), []change{byBase(6, whole(9, vote)), byBase(5, whole(1, system))},
		},
		"of two base states of a slot the later wins": {
			bare(8, base(5), 0), []change{byBase(5, lamports(9)), byBase(5, lamports(8))},
		},
		"a block overrides base state taken after it": {
			account(1, vote, block(5), base(9)), []change{byBase(9, whole(9, vote)), byBlock(5, lamports(1))},
		},
		"closing what is not held stores nothing": {nil, []change{byBlock(5, lamports(0))}},
		"closing forgets every field": {
			bare(0, block(6), block(6)), []change{wholly, byBlock(6, whole(0, vote))},
		},
		"closed again stays closed where it was": {
			bare(0, block(8), block(6)), []change{opened, closed, again},
		},
		"base state from before the last of two closings": {
			bare(0, block(8), block(6)), []change{opened, closed, again, byBase(7, lamports(3))},
		},
		"base state of an earlier life changes nothing": {
			bare(3, block(8), block(8)), []change{opened, closed, byBlock(8, lamports(3)), byBase(7, whole(9, vote))},
		},
		"an account that comes back starts from unknown": {
			bare(3, block(7), block(7)), []change{wholly, closed, byBlock(7, lamports(3))},
		},
		"closed and back in one block": {
			bare(3, block(6), block(6)), []change{wholly, closed, byBlock(6, lamports(3))},
		},
		"base state from before the closing stays out": {
			bare(0, block(6), block(6)), []change{opened, closed, byBase(6, whole(9, vote))},
		},
		"base state from after the closing brings it back": {
			bare(4, base(7), base(7)), []change{opened, closed, byBase(7, lamports(4))},
		},
		"base state that lacks the account closes it": {
			bare(0, base(6), base(6)), []change{opened, byBase(6, lamports(0))},
		},
		"base state from before the creation": {
			bare(9, block(5), 0), []change{opened, byBase(4, whole(0, vote))},
		},
	}
	for name, tt := range tests {
		if got := merged(tt.changes); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tt.want)
		}
	}
}

func TestTokenFactsAreMerged(t *testing.T) {
	details := Some(TokenDetails{State: TokenFrozen, Delegate: Some(wallet), DelegatedAmount: 3})
	initialized := TokenDetails{State: TokenInitialized}
	ownerless := balance(mintKey, Pubkey{}, 50)
	ownerless.TokenOwnerUnknown = true
	held := byBlock(5, holding(mintKey, wallet, 10, details.Value))
	heldBefore := byBase(4, holding(mintKey, wallet, 10, details.Value))
	of := func(program Pubkey, known Fields, token *TokenAccount) change {
		return byBlock(6, AccountWrite{Lamports: 2, Owner: program, Known: known, Token: token})
	}
	tests := map[string]struct {
		want    *TokenAccount
		changes []change
	}{
		"a balance keeps the details of the holding": {
			&TokenAccount{mintKey, wallet, 50, details}, []change{held, byBlock(6, balance(mintKey, wallet, 50))},
		},
		"a balance of another wallet starts a holding": {
			&TokenAccount{Mint: mintKey, Owner: newWallet, Amount: 50}, []change{held, byBlock(6, balance(mintKey, newWallet, 50))},
		},
		"a balance of another mint starts a holding": {
			&TokenAccount{Mint: otherMint, Owner: wallet, Amount: 50}, []change{held, byBlock(6, balance(otherMint, wallet, 50))},
		},
		"data replaces details": {
			&TokenAccount{mintKey, wallet, 5, Some(initialized)}, []change{held, byBlock(6, holding(mintKey, wallet, 5, initialized))},
		},
		"a write that shows no token facts keeps them": {
			&TokenAccount{mintKey, wallet, 10, details}, []change{held, byBlock(6, lamports(3))},
		},
		"no longer a token account": {
			nil, []change{held, of(TokenProgram, FieldOwner|FieldToken, nil)},
		},
		"another owner program ends the holding": {nil, []change{held, of(VoteProgram, FieldOwner, nil)}},
		"token facts of another program are none": {
			nil, []change{of(VoteProgram, FieldOwner|FieldToken, &TokenAccount{Mint: mintKey})},
		},
		"closing ends the holding": {
			nil, []change{held, byBlock(6, lamports(0)), byBlock(7, lamports(2))},
		},
		"a balance without wallet changes the amount": {
			&TokenAccount{mintKey, wallet, 50, details}, []change{held, byBlock(6, ownerless)},
		},
		"a balance without wallet makes no holding": {nil, []change{byBlock(6, ownerless)}},
		"a balance without wallet yields to base": {
			&TokenAccount{mintKey, wallet, 10, details}, []change{byBlock(6, ownerless), heldBefore},
		},
		"a balance without wallet of another mint": {
			nil, []change{byBlock(5, balance(otherMint, wallet, 10)), byBlock(6, ownerless)},
		},
		"older base state does not override a balance": {
			&TokenAccount{Mint: mintKey, Owner: wallet, Amount: 50}, []change{byBlock(5, balance(mintKey, wallet, 50)), heldBefore},
		},
		"older base state fills in a holding": {
			&TokenAccount{mintKey, wallet, 10, details}, []change{byBlock(5, lamports(2)), heldBefore},
		},
	}
	for name, tt := range tests {
		for i := range tt.changes {
			if a := merged(tt.changes[:i]); a != nil && a.Token != nil {
				held := *a.Token
				Merge(a, &tt.changes[i].write, tt.changes[i].from)
				if held != *a.Token {
					t.Errorf("%s: what was held changed in place", name)
				}
			}
		}
		if got := merged(tt.changes).Token; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tt.want)
		}
	}
}

// When base state arrives must not matter: blocks come in the order of their slots, and
// base state of any slot in between gives what it would have given at its place.
func TestBaseStateGivesTheSameWheneverItArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var arrived []change
		slot := Slot(0)
		for range rapid.IntRange(1, 8).Draw(t, "writes") {
			w := AccountWrite{
				Lamports: Lamports(rapid.Uint64Range(1, 9).Draw(t, "lamports")), // no closing
				Known:    Fields(rapid.Byte().Draw(t, "known")) & FieldsShown,
			}
			if w.Known&FieldOwner != 0 {
				w.Owner[0] = rapid.Byte().Draw(t, "owner")
			}
			if w.Known&FieldRentEpoch != 0 {
				w.RentEpoch = rapid.Uint64().Draw(t, "rent epoch")
			}
			w.Executable = w.Known&FieldExecutable != 0 && rapid.Bool().Draw(t, "executable")
			if rapid.Bool().Draw(t, "block") {
				slot++
				arrived = append(arrived, byBlock(slot, w))
			} else {
				// Never past the next block: that it comes after base state taken
				// later happens only when the source goes back.
				arrived = append(arrived, byBase(Slot(rapid.Uint64Range(0, uint64(slot)).Draw(t, "base slot")), w))
			}
		}
		inOrder := slices.Clone(arrived)
		slices.SortStableFunc(inOrder, func(a, b change) int { return int(a.from) - int(b.from) })
		got, want := merged(arrived), merged(inOrder)
		got.Pubkey, want.Pubkey = Pubkey{}, Pubkey{}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("as they arrived %+v:\ngot  %+v\nwant %+v", arrived, got, want)
		}
	})
}

func TestMintFactsAreMerged(t *testing.T) {
	supply := func(n uint64) Mint { return Mint{Decimals: 6, Supply: Some(n), Scaled: Some(false)} }
	six, three := Mint{Decimals: 6}, Mint{Decimals: 3}
	block, base := BlockProvenance, BaseProvenance
	type change struct {
		mint Mint
		from Provenance
	}
	held := change{supply(10), block(5)}
	tests := map[string]struct {
		want    Mint
		changes []change
	}{
		"a balance tells decimals":                 {six, []change{{six, block(5)}}},
		"a balance keeps supply and scaling":       {supply(10), []change{held, {six, block(6)}}},
		"a later block replaces supply":            {supply(11), []change{held, {supply(11), block(6)}}},
		"older base state does not replace supply": {supply(10), []change{held, {supply(9), base(5)}}},
		"newer base state replaces supply":         {supply(12), []change{held, {supply(12), base(6)}}},
		"older base state fills in what is unknown": {
			supply(9), []change{{six, block(5)}, {supply(9), base(3)}},
		},
		"older base state does not replace decimals": {six, []change{{six, block(5)}, {three, base(5)}}},
		"of base state the highest slot wins": {
			supply(9), []change{{six, base(9)}, {supply(9), base(8)}, {three, base(8)}},
		},
		"each fact by itself": {
			supply(11), []change{held, {six, block(8)}, {supply(11), base(7)}},
		},
		"a block may turn scaling on, and leave the other": {
			Mint{6, Some(uint64(10)), Some(true), 0, 0, 0}, []change{held, {Mint{Decimals: 6, Scaled: Some(true)}, block(6)}},
		},
	}
	for name, tt := range tests {
		var got *Mint
		for _, c := range tt.changes {
			before := got
			if before != nil {
				clone := *before
				before = &clone
			}
			if after := MergeMint(got, c.mint, c.from); got != nil && *before != *got {
				t.Errorf("%s: what was held changed in place", name)
			} else {
				got = after
			}
		}
		if !got.SameFacts(&tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, tt.want)
		}
	}
}
