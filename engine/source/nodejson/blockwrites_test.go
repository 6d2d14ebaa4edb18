package nodejson

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// drawWrite draws what one transaction may teach of one of three accounts.
func drawWrite(t *rapid.T) ledger.AccountWrite {
	key := rapid.ByteRange(1, 3)
	w := ledger.AccountWrite{
		Pubkey:   ledger.Pubkey{key.Draw(t, "key")},
		Lamports: ledger.Lamports(rapid.Uint64Range(0, 2).Draw(t, "lamports")),
	}
	if rapid.Bool().Draw(t, "lost") {
		w.Known |= ledger.FieldToken
	}
	if rapid.Bool().Draw(t, "token") {
		w.Known |= ledger.FieldToken
		w.Token = &ledger.TokenAccount{Mint: ledger.Pubkey{key.Draw(t, "mint")}, Amount: rapid.Uint64().Draw(t, "amount")}
		if w.TokenOwnerUnknown = rapid.Bool().Draw(t, "wallet unknown"); !w.TokenOwnerUnknown {
			w.Token.Owner = ledger.Pubkey{key.Draw(t, "wallet")}
		}
	}
	if rapid.Bool().Draw(t, "program") {
		w.Owner, w.Known = ledger.TokenProgram, w.Known|ledger.FieldOwner
	}
	return w
}

// Folding the writes of a block changes nothing of what they teach, whatever was held before.
func TestFoldedWritesTeachWhatTheSingleOnesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain, folded := map[ledger.Pubkey]*ledger.Account{}, map[ledger.Pubkey]*ledger.Account{}
		apply := func(accounts map[ledger.Pubkey]*ledger.Account, list []ledger.AccountWrite, taught ledger.Provenance) {
			for i := range list {
				accounts[list[i].Pubkey] = ledger.Merge(accounts[list[i].Pubkey], &list[i], taught)
			}
		}
		before := rapid.SliceOfN(rapid.Custom(drawWrite), 0, 4).Draw(t, "before")
		for i := range before {
			if token := before[i].Token; token != nil && !before[i].TokenOwnerUnknown {
				token.Details = ledger.Some(ledger.TokenDetails{State: ledger.TokenFrozen})
			}
		}
		list := rapid.SliceOfN(rapid.Custom(drawWrite), 0, 12).Draw(t, "block")
		apply(plain, before, ledger.BlockProvenance(1))
		apply(folded, before, ledger.BlockProvenance(1))

		gathered := newBlockWrites()
		for _, w := range list {
			gathered.add(w)
		}
		apply(plain, list, ledger.BlockProvenance(2))
		apply(folded, gathered.accounts, ledger.BlockProvenance(2))
		for k, want := range plain {
			got := folded[k]
			if exists(got) != exists(want) || exists(got) && (!got.SameState(want) || got.Known != want.Known) {
				t.Fatalf("%v: got %+v, want %+v", k[0], got, want)
			}
		}
	})
}

// exists takes an account that was opened and closed for one that never was.
func exists(a *ledger.Account) bool { return a != nil && a.Exists() }

// An amount that is shown as it stands, with or without the zeros at its end, is not scaled; any other is.
func TestScaledAmountsTeachThatTheMintScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 100, 1_500_000, math.MaxUint64}))
		decimals := rapid.OneOf(rapid.Just[uint8](0), rapid.Uint8Range(0, 20)).Draw(t, "decimals")
		amount, other := amounts.Draw(t, "amount"), amounts.Draw(t, "other")
		whole := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		shown := new(big.Rat).SetFrac(new(big.Int).SetUint64(amount), whole).FloatString(int(decimals))
		short := shown
		if decimals > 0 {
			short = strings.TrimSuffix(strings.TrimRight(shown, "0"), ".")
		}
		for _, text := range []string{shown, short} {
			ledgertest.Holds(t, isPlainUIAmount(text, amount, decimals), "%d with %d decimals as %q is scaled", amount, decimals, text)
			ledgertest.Equal(t, isPlainUIAmount(text, other, decimals), other == amount, "%d with %d decimals as %q is plain", other, decimals, text)
		}
	})
}

func TestOneScaledAmountMarksTheMintOfTheBlock(t *testing.T) {
	gathered := newBlockWrites()
	for _, scaled := range []ledger.Opt[bool]{{}, ledger.Some(true), {}} {
		gathered.learnMint(ledger.Pubkey{1}, ledger.Mint{Decimals: 3, Scaled: scaled})
	}
	want := []ledger.MintWrite{{Pubkey: ledger.Pubkey{1}, Mint: ledger.Mint{Decimals: 3, Scaled: ledger.Some(true)}}}
	ledgertest.Equal(t, gathered.mints, want, "mints")
}
