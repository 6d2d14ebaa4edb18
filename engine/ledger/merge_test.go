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

// allFields is the provenance of an account whose fields are all of one write.
func allFields(p Provenance) *FieldProvenance { return &FieldProvenance{p, p, p, p, p} }

// balance is a write that knows a token balance only.
func balance(mint, owner Pubkey, amount uint64) AccountWrite {
	return AccountWrite{
		Lamports: 2, Owner: TokenProgram, Known: FieldOwner | FieldToken,
		Token: &TokenAccount{Mint: mint, Owner: owner, Amount: amount},
	}
}

func TestWritesAreMerged(t *testing.T) {
	all := FieldsAll
	tests := map[string]struct {
		changes []change
		want    *Account
	}{
		"a balance alone leaves the rest unknown": {
			[]change{byBlock(5, lamports(9))},
			&Account{Lamports: 9, Provenance: BlockProvenance(5)},
		},
		"a partial write keeps what it does not show": {
			[]change{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(8))},
			&Account{Lamports: 8, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all,
				Provenance: BlockProvenance(6), FieldProvenance: allFields(BlockProvenance(5))},
		},
		"a whole write sets the provenance of all fields": {
			[]change{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(8)), byBlock(7, whole(6, SystemProgram))},
			&Account{Lamports: 6, Owner: SystemProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BlockProvenance(7)},
		},
		"of two writes in a block the later wins": {
			[]change{byBlock(5, lamports(9)), byBlock(5, lamports(8))},
			&Account{Lamports: 8, Provenance: BlockProvenance(5)},
		},
		"base state before any block is taken": {
			[]change{byBase(5, whole(9, VoteProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BaseProvenance(5)},
		},
		"base state of the slot of a block does not override it": {
			[]change{byBlock(5, whole(9, VoteProgram)), byBase(5, whole(1, SystemProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BlockProvenance(5)},
		},
		"base state after a block overrides it": {
			[]change{byBlock(5, whole(9, VoteProgram)), byBase(6, whole(1, SystemProgram))},
			&Account{Lamports: 1, Owner: SystemProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BaseProvenance(6)},
		},
		"base state before a block fills in what is unknown": {
			[]change{byBlock(5, lamports(9)), byBase(3, whole(1, VoteProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all,
				Provenance: BlockProvenance(5), FieldProvenance: allFields(BaseProvenance(3))},
		},
		"of two base states the higher slot wins, whichever came first": {
			[]change{byBase(6, whole(9, VoteProgram)), byBase(5, whole(1, SystemProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BaseProvenance(6)},
		},
		"of two base states of a slot the later wins": {
			[]change{byBase(5, lamports(9)), byBase(5, lamports(8))},
			&Account{Lamports: 8, Provenance: BaseProvenance(5)},
		},
		"a block overrides base state taken after it": {
			[]change{byBase(9, whole(9, VoteProgram)), byBlock(5, lamports(1))},
			&Account{Lamports: 1, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all,
				Provenance: BlockProvenance(5), FieldProvenance: allFields(BaseProvenance(9))},
		},

		"closing what is not held stores nothing": {[]change{byBlock(5, lamports(0))}, nil},
		"closing forgets every field": {
			[]change{byBlock(5, whole(9, VoteProgram)), byBlock(6, whole(0, VoteProgram))},
			&Account{Provenance: BlockProvenance(6), Since: BlockProvenance(6)},
		},
		"closed again stays closed where it was": {
			[]change{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBlock(8, lamports(0))},
			&Account{Provenance: BlockProvenance(8), Since: BlockProvenance(6)},
		},
		"base state from before the last of two closings stays out": {
			[]change{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBlock(8, lamports(0)), byBase(7, lamports(3))},
			&Account{Provenance: BlockProvenance(8), Since: BlockProvenance(6)},
		},
		"base state of an earlier life changes nothing": {
			[]change{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBlock(8, lamports(3)), byBase(7, whole(9, VoteProgram))},
			&Account{Lamports: 3, Provenance: BlockProvenance(8), Since: BlockProvenance(8)},
		},
		"an account that comes back starts from unknown": {
			[]change{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(0)), byBlock(7, lamports(3))},
			&Account{Lamports: 3, Provenance: BlockProvenance(7), Since: BlockProvenance(7)},
		},
		"closed and back in one block": {
			[]change{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(0)), byBlock(6, lamports(3))},
			&Account{Lamports: 3, Provenance: BlockProvenance(6), Since: BlockProvenance(6)},
		},
		"base state from before the closing stays out": {
			[]change{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBase(6, whole(9, VoteProgram))},
			&Account{Provenance: BlockProvenance(6), Since: BlockProvenance(6)},
		},
		"base state from after the closing brings the account back": {
			[]change{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBase(7, lamports(4))},
			&Account{Lamports: 4, Provenance: BaseProvenance(7), Since: BaseProvenance(7)},
		},
		"base state that lacks the account closes it": {
			[]change{byBlock(5, lamports(9)), byBase(6, lamports(0))},
			&Account{Provenance: BaseProvenance(6), Since: BaseProvenance(6)},
		},
		"base state from before the creation closes and changes nothing": {
			[]change{byBlock(5, lamports(9)), byBase(4, whole(0, VoteProgram))},
			&Account{Lamports: 9, Provenance: BlockProvenance(5)},
		},
	}
	for name, tt := range tests {
		if got := merged(tt.changes); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tt.want)
		}
	}
}

func TestTokenFactsAreMerged(t *testing.T) {
	details := TokenDetails{State: TokenFrozen, Delegate: Some(wallet), DelegatedAmount: 3}
	ownerless := balance(mintKey, Pubkey{}, 50)
	ownerless.TokenOwnerUnknown = true
	noToken := AccountWrite{Lamports: 2, Owner: TokenProgram, Known: FieldOwner | FieldToken}
	tests := map[string]struct {
		changes []change
		want    *TokenAccount
	}{
		"a balance keeps the details of the holding": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, balance(mintKey, wallet, 50))},
			&TokenAccount{mintKey, wallet, 50, Some(details)},
		},
		"a balance of another wallet starts a holding": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, balance(mintKey, newWallet, 50))},
			&TokenAccount{Mint: mintKey, Owner: newWallet, Amount: 50},
		},
		"a balance of another mint starts a holding": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, balance(otherMint, wallet, 50))},
			&TokenAccount{Mint: otherMint, Owner: wallet, Amount: 50},
		},
		"data replaces details": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, holding(mintKey, wallet, 5, TokenDetails{State: TokenInitialized}))},
			&TokenAccount{mintKey, wallet, 5, Some(TokenDetails{State: TokenInitialized})},
		},
		"a write that shows no token facts keeps them": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, lamports(3))},
			&TokenAccount{mintKey, wallet, 10, Some(details)},
		},
		"no longer a token account": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, noToken)}, nil,
		},
		"another owner program ends the holding": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, AccountWrite{Lamports: 2, Owner: VoteProgram, Known: FieldOwner})}, nil,
		},
		"token facts of another program are none": {
			[]change{byBlock(5, AccountWrite{Lamports: 2, Owner: VoteProgram, Known: FieldOwner | FieldToken, Token: &TokenAccount{Mint: mintKey}})}, nil,
		},
		"closing ends the holding": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, lamports(0)), byBlock(7, lamports(2))}, nil,
		},
		"a balance without wallet changes the amount of a known holding": {
			[]change{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, ownerless)},
			&TokenAccount{mintKey, wallet, 50, Some(details)},
		},
		"a balance without wallet makes no holding": {[]change{byBlock(6, ownerless)}, nil},
		"a balance without wallet leaves older base state its say": {
			[]change{byBlock(6, ownerless), byBase(5, holding(mintKey, wallet, 10, details))},
			&TokenAccount{mintKey, wallet, 10, Some(details)},
		},
		"a balance without wallet of another mint ends the holding": {
			[]change{byBlock(5, balance(otherMint, wallet, 10)), byBlock(6, ownerless)}, nil,
		},
		"older base state does not override a balance": {
			[]change{byBlock(5, balance(mintKey, wallet, 50)), byBase(4, holding(mintKey, wallet, 10, details))},
			&TokenAccount{Mint: mintKey, Owner: wallet, Amount: 50},
		},
		"older base state fills in a holding that was not known": {
			[]change{byBlock(5, lamports(2)), byBase(4, holding(mintKey, wallet, 10, details))},
			&TokenAccount{mintKey, wallet, 10, Some(details)},
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
	type change struct {
		mint Mint
		from Provenance
	}
	tests := map[string]struct {
		changes []change
		want    Mint
	}{
		"a balance tells decimals": {
			[]change{{Mint{Decimals: 6}, BlockProvenance(5)}}, Mint{Decimals: 6},
		},
		"a balance keeps supply and scaling": {
			[]change{{supply(10), BlockProvenance(5)}, {Mint{Decimals: 6}, BlockProvenance(6)}}, supply(10),
		},
		"a later block replaces supply": {
			[]change{{supply(10), BlockProvenance(5)}, {supply(11), BlockProvenance(6)}}, supply(11),
		},
		"older base state does not replace supply": {
			[]change{{supply(10), BlockProvenance(5)}, {supply(9), BaseProvenance(5)}}, supply(10),
		},
		"newer base state replaces supply": {
			[]change{{supply(10), BlockProvenance(5)}, {supply(12), BaseProvenance(6)}}, supply(12),
		},
		"older base state fills in what is unknown": {
			[]change{{Mint{Decimals: 6}, BlockProvenance(5)}, {supply(9), BaseProvenance(3)}}, supply(9),
		},
		"older base state does not replace the decimals of a balance": {
			[]change{{Mint{Decimals: 6}, BlockProvenance(5)}, {Mint{Decimals: 3}, BaseProvenance(5)}}, Mint{Decimals: 6},
		},
		"of base state the highest slot wins": {
			[]change{{Mint{Decimals: 6}, BaseProvenance(9)}, {supply(9), BaseProvenance(8)}, {Mint{Decimals: 3}, BaseProvenance(8)}}, supply(9),
		},
		"each fact by itself": {
			[]change{{supply(10), BlockProvenance(5)}, {Mint{Decimals: 6}, BlockProvenance(8)}, {supply(11), BaseProvenance(7)}}, supply(11),
		},
		"a block may turn scaling on": {
			[]change{{supply(10), BlockProvenance(5)}, {Mint{Decimals: 6, Scaled: Some(true)}, BlockProvenance(6)}},
			Mint{Decimals: 6, Supply: Some(uint64(10)), Scaled: Some(true)},
		},
	}
	for name, tt := range tests {
		var got *Mint
		for _, c := range tt.changes {
			var held Mint
			before := got
			if before != nil {
				held = *before
			}
			got = MergeMint(before, c.mint, c.from)
			if before != nil && *before != held {
				t.Errorf("%s: what was held changed in place", name)
			}
		}
		if !got.SameFacts(&tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, tt.want)
		}
	}
}
