package ledger

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// lesson is a write and who taught it.
type lesson struct {
	write AccountWrite
	by    Provenance
}

func byBlock(s Slot, w AccountWrite) lesson { return lesson{w, BlockProvenance(s)} }
func byBase(s Slot, w AccountWrite) lesson  { return lesson{w, BaseProvenance(s)} }

func learn(lessons []lesson) *Account {
	var a *Account
	for i := range lessons {
		a = Merge(a, &lessons[i].write, lessons[i].by)
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

func TestAccountKnowsWhatItWasTaught(t *testing.T) {
	all := FieldsAll
	tests := map[string]struct {
		lessons []lesson
		want    *Account
	}{
		"a balance alone leaves the rest unknown": {
			[]lesson{byBlock(5, lamports(9))},
			&Account{Lamports: 9, Provenance: BlockProvenance(5)},
		},
		"a partial write keeps what it does not show": {
			[]lesson{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(8))},
			&Account{Lamports: 8, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all,
				Provenance: BlockProvenance(6), FieldProvenance: &FieldProvenance{
					BlockProvenance(5), BlockProvenance(5), BlockProvenance(5), BlockProvenance(5), BlockProvenance(5)}},
		},
		"a whole write teaches all fields together": {
			[]lesson{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(8)), byBlock(7, whole(6, SystemProgram))},
			&Account{Lamports: 6, Owner: SystemProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BlockProvenance(7)},
		},
		"of two writes in a block the later wins": {
			[]lesson{byBlock(5, lamports(9)), byBlock(5, lamports(8))},
			&Account{Lamports: 8, Provenance: BlockProvenance(5)},
		},
		"base state before any block is taken": {
			[]lesson{byBase(5, whole(9, VoteProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BaseProvenance(5)},
		},
		"base state of the slot of a block does not override it": {
			[]lesson{byBlock(5, whole(9, VoteProgram)), byBase(5, whole(1, SystemProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BlockProvenance(5)},
		},
		"base state after a block overrides it": {
			[]lesson{byBlock(5, whole(9, VoteProgram)), byBase(6, whole(1, SystemProgram))},
			&Account{Lamports: 1, Owner: SystemProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BaseProvenance(6)},
		},
		"base state before a block fills in what is unknown": {
			[]lesson{byBlock(5, lamports(9)), byBase(3, whole(1, VoteProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all,
				Provenance: BlockProvenance(5), FieldProvenance: &FieldProvenance{
					BaseProvenance(3), BaseProvenance(3), BaseProvenance(3), BaseProvenance(3), BaseProvenance(3)}},
		},
		"of two base states the higher slot wins, whichever came first": {
			[]lesson{byBase(6, whole(9, VoteProgram)), byBase(5, whole(1, SystemProgram))},
			&Account{Lamports: 9, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all, Provenance: BaseProvenance(6)},
		},
		"of two base states of a slot the later wins": {
			[]lesson{byBase(5, lamports(9)), byBase(5, lamports(8))},
			&Account{Lamports: 8, Provenance: BaseProvenance(5)},
		},
		"a block overrides base state taken after it": {
			[]lesson{byBase(9, whole(9, VoteProgram)), byBlock(5, lamports(1))},
			&Account{Lamports: 1, Owner: VoteProgram, RentEpoch: 7, Executable: true, Known: all,
				Provenance: BlockProvenance(5), FieldProvenance: &FieldProvenance{
					BaseProvenance(9), BaseProvenance(9), BaseProvenance(9), BaseProvenance(9), BaseProvenance(9)}},
		},

		"closing what is not held stores nothing": {[]lesson{byBlock(5, lamports(0))}, nil},
		"closing forgets every field": {
			[]lesson{byBlock(5, whole(9, VoteProgram)), byBlock(6, whole(0, VoteProgram))},
			&Account{Provenance: BlockProvenance(6), Since: BlockProvenance(6)},
		},
		"closed again stays closed where it was": {
			[]lesson{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBlock(8, lamports(0))},
			&Account{Provenance: BlockProvenance(8), Since: BlockProvenance(6)},
		},
		"base state from before the last of two closings stays out": {
			[]lesson{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBlock(8, lamports(0)), byBase(7, lamports(3))},
			&Account{Provenance: BlockProvenance(8), Since: BlockProvenance(6)},
		},
		"base state of an earlier life teaches nothing": {
			[]lesson{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBlock(8, lamports(3)), byBase(7, whole(9, VoteProgram))},
			&Account{Lamports: 3, Provenance: BlockProvenance(8), Since: BlockProvenance(8)},
		},
		"an account that comes back starts from unknown": {
			[]lesson{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(0)), byBlock(7, lamports(3))},
			&Account{Lamports: 3, Provenance: BlockProvenance(7), Since: BlockProvenance(7)},
		},
		"closed and back in one block": {
			[]lesson{byBlock(5, whole(9, VoteProgram)), byBlock(6, lamports(0)), byBlock(6, lamports(3))},
			&Account{Lamports: 3, Provenance: BlockProvenance(6), Since: BlockProvenance(6)},
		},
		"base state from before the closing stays out": {
			[]lesson{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBase(6, whole(9, VoteProgram))},
			&Account{Provenance: BlockProvenance(6), Since: BlockProvenance(6)},
		},
		"base state from after the closing brings the account back": {
			[]lesson{byBlock(5, lamports(9)), byBlock(6, lamports(0)), byBase(7, lamports(4))},
			&Account{Lamports: 4, Provenance: BaseProvenance(7), Since: BaseProvenance(7)},
		},
		"base state that lacks the account closes it": {
			[]lesson{byBlock(5, lamports(9)), byBase(6, lamports(0))},
			&Account{Provenance: BaseProvenance(6), Since: BaseProvenance(6)},
		},
		"base state from before the creation closes and teaches nothing": {
			[]lesson{byBlock(5, lamports(9)), byBase(4, whole(0, VoteProgram))},
			&Account{Lamports: 9, Provenance: BlockProvenance(5)},
		},
	}
	for name, tt := range tests {
		if got := learn(tt.lessons); !reflect.DeepEqual(got, tt.want) {
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
		lessons []lesson
		want    *TokenAccount
	}{
		"a balance keeps the details of the holding": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, balance(mintKey, wallet, 50))},
			&TokenAccount{mintKey, wallet, 50, Some(details)},
		},
		"a balance of another wallet starts a holding": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, balance(mintKey, newWallet, 50))},
			&TokenAccount{Mint: mintKey, Owner: newWallet, Amount: 50},
		},
		"a balance of another mint starts a holding": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, balance(otherMint, wallet, 50))},
			&TokenAccount{Mint: otherMint, Owner: wallet, Amount: 50},
		},
		"data replaces details": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, holding(mintKey, wallet, 5, TokenDetails{State: TokenInitialized}))},
			&TokenAccount{mintKey, wallet, 5, Some(TokenDetails{State: TokenInitialized})},
		},
		"a write that shows no token facts keeps them": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, lamports(3))},
			&TokenAccount{mintKey, wallet, 10, Some(details)},
		},
		"no longer a token account": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, noToken)}, nil,
		},
		"another owner program ends the holding": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, AccountWrite{Lamports: 2, Owner: VoteProgram, Known: FieldOwner})}, nil,
		},
		"token facts of another program are none": {
			[]lesson{byBlock(5, AccountWrite{Lamports: 2, Owner: VoteProgram, Known: FieldOwner | FieldToken, Token: &TokenAccount{Mint: mintKey}})}, nil,
		},
		"closing ends the holding": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, lamports(0)), byBlock(7, lamports(2))}, nil,
		},
		"a balance without wallet changes the amount of a known holding": {
			[]lesson{byBlock(5, holding(mintKey, wallet, 10, details)), byBlock(6, ownerless)},
			&TokenAccount{mintKey, wallet, 50, Some(details)},
		},
		"a balance without wallet makes no holding": {[]lesson{byBlock(6, ownerless)}, nil},
		"a balance without wallet leaves older base state its say": {
			[]lesson{byBlock(6, ownerless), byBase(5, holding(mintKey, wallet, 10, details))},
			&TokenAccount{mintKey, wallet, 10, Some(details)},
		},
		"a balance without wallet of another mint ends the holding": {
			[]lesson{byBlock(5, balance(otherMint, wallet, 10)), byBlock(6, ownerless)}, nil,
		},
		"older base state does not override a balance": {
			[]lesson{byBlock(5, balance(mintKey, wallet, 50)), byBase(4, holding(mintKey, wallet, 10, details))},
			&TokenAccount{Mint: mintKey, Owner: wallet, Amount: 50},
		},
		"older base state fills in a holding that was not known": {
			[]lesson{byBlock(5, lamports(2)), byBase(4, holding(mintKey, wallet, 10, details))},
			&TokenAccount{mintKey, wallet, 10, Some(details)},
		},
	}
	for name, tt := range tests {
		for i := range tt.lessons {
			if a := learn(tt.lessons[:i]); a != nil && a.Token != nil {
				held := *a.Token
				Merge(a, &tt.lessons[i].write, tt.lessons[i].by)
				if held != *a.Token {
					t.Errorf("%s: what was held changed in place", name)
				}
			}
		}
		if got := learn(tt.lessons).Token; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tt.want)
		}
	}
}

// When base state arrives must not matter: blocks come in the order of their slots, and
// base state of any slot in between gives what it would have given at its place.
func TestBaseStateGivesTheSameWheneverItArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var arrived []lesson
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
		slices.SortStableFunc(inOrder, func(a, b lesson) int { return int(a.by) - int(b.by) })
		got, want := learn(arrived), learn(inOrder)
		got.Pubkey, want.Pubkey = Pubkey{}, Pubkey{}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("as they arrived %+v:\ngot  %+v\nwant %+v", arrived, got, want)
		}
	})
}

func TestMintFactsAreMerged(t *testing.T) {
	supply := func(n uint64) Mint { return Mint{Decimals: 6, Supply: Some(n), Scaled: Some(false)} }
	type lesson struct {
		mint Mint
		by   Provenance
	}
	tests := map[string]struct {
		lessons []lesson
		want    Mint
	}{
		"a balance teaches decimals": {
			[]lesson{{Mint{Decimals: 6}, BlockProvenance(5)}}, Mint{Decimals: 6},
		},
		"a balance keeps supply and scaling": {
			[]lesson{{supply(10), BlockProvenance(5)}, {Mint{Decimals: 6}, BlockProvenance(6)}}, supply(10),
		},
		"a later block replaces supply": {
			[]lesson{{supply(10), BlockProvenance(5)}, {supply(11), BlockProvenance(6)}}, supply(11),
		},
		"older base state does not replace supply": {
			[]lesson{{supply(10), BlockProvenance(5)}, {supply(9), BaseProvenance(5)}}, supply(10),
		},
		"newer base state replaces supply": {
			[]lesson{{supply(10), BlockProvenance(5)}, {supply(12), BaseProvenance(6)}}, supply(12),
		},
		"older base state fills in what is unknown": {
			[]lesson{{Mint{Decimals: 6}, BlockProvenance(5)}, {supply(9), BaseProvenance(3)}}, supply(9),
		},
		"older base state does not replace the decimals of a balance": {
			[]lesson{{Mint{Decimals: 6}, BlockProvenance(5)}, {Mint{Decimals: 3}, BaseProvenance(5)}}, Mint{Decimals: 6},
		},
		"of base state the highest slot wins": {
			[]lesson{{Mint{Decimals: 6}, BaseProvenance(9)}, {supply(9), BaseProvenance(8)}, {Mint{Decimals: 3}, BaseProvenance(8)}}, supply(9),
		},
		"each fact by itself": {
			[]lesson{{supply(10), BlockProvenance(5)}, {Mint{Decimals: 6}, BlockProvenance(8)}, {supply(11), BaseProvenance(7)}}, supply(11),
		},
		"a block may turn scaling on": {
			[]lesson{{supply(10), BlockProvenance(5)}, {Mint{Decimals: 6, Scaled: Some(true)}, BlockProvenance(6)}},
			Mint{Decimals: 6, Supply: Some(uint64(10)), Scaled: Some(true)},
		},
	}
	for name, tt := range tests {
		var got *Mint
		for _, l := range tt.lessons {
			var held Mint
			before := got
			if before != nil {
				held = *before
			}
			got = MergeMint(before, l.mint, l.by)
			if before != nil && *before != held {
				t.Errorf("%s: what was held changed in place", name)
			}
		}
		if !got.SameFacts(&tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, tt.want)
		}
	}
}
