package rpc

import (
	"reflect"
	"testing"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// scaledMint returns the data of a mint whose amounts are scaled, which the head does not tell.
func scaledMint(supply uint64, decimals byte) []byte {
	return agavetest.MintData(&ledger.Mint{Decimals: decimals, Supply: ledger.Some(supply), Scaled: ledger.Some(true)})
}

// mintFacts are what it tells.
func mintFacts(scaled bool) *ledger.Mint {
	return &ledger.Mint{Decimals: 3, Supply: ledger.Some(uint64(9)), Scaled: ledger.Some(scaled)}
}

func TestTokenFactsComeFromThePartOfTheData(t *testing.T) {
	mint, wallet, none := keyOf(7), keyOf(8), ledger.Opt[ledger.Pubkey]{}
	account := holding(mint, wallet, 5, ledger.Some(keyOf(9)))
	extended := append(append(holding(mint, wallet, 6, none), 2), make([]byte, 40)...)
	scaled := scaledMint(9, 3)
	multisig := append(append(holding(mint, wallet, 7, none), 2), make([]byte, 355-166)...)
	for name, tt := range map[string]struct {
		owner  ledger.Pubkey
		data   []byte
		amount uint64
		mint   *ledger.Mint
		calls  int
	}{
		"token account":          {ledger.TokenProgram, account, 5, nil, 1},
		"extended token account": {ledger.Token2022Program, extended, 6, nil, 1},
		"mint":                   {ledger.TokenProgram, scaled[:82], 0, mintFacts(false), 1},
		"mint with extensions":   {ledger.Token2022Program, scaled, 0, mintFacts(true), 2},
		"multisig":               {ledger.Token2022Program, multisig, 0, nil, 1},
		"too long for a token":   {ledger.TokenProgram, extended, 0, nil, 1},
		"another program":        {ledger.VoteProgram, make([]byte, 3762), 0, nil, 1},
	} {
		script := func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 12)
			n.finalized = 11 // what is confirmed alone is not told
			n.hold(keyOf(1), 500, tt.owner, tt.data)
			state, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized)
			if err != nil || state.Slot != 11 || len(state.Accounts) != 1 {
				t.Fatalf("%s: got %+v, %v", name, state, err)
			}
			w := state.Accounts[0]
			want := ledger.AccountWrite{
				Pubkey: keyOf(1), Lamports: 500, Owner: tt.owner, RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll, Mint: tt.mint,
			}
			if tt.amount != 0 {
				want.SetTokenFacts(tt.data)
			}
			calls := tt.calls
			if held := s.config.Data; held != nil {
				want.SetData(tt.data, held)
				calls = 1
			}
			if !reflect.DeepEqual(w, want) {
				t.Errorf("%s: the account is %+v, want %+v", name, w, want)
			}
			ledgertest.Equal(t, w.Token != nil, tt.amount != 0, "%s: whether it holds tokens", name)
			ledgertest.Equal(t, n.calls["getMultipleAccounts"], calls, "%s: calls", name)
		}
		for _, held := range []string{"none", "all", ledger.VoteProgram.String()} {
			data, err := ledger.ParseDataPrograms(held)
			ledgertest.Must(t, err)
			play(t, Config{Data: data}, script)
		}
	}
}

// Accounts whose data is more than an answer may have are told without it.
func TestDataThatIsTooLargeStaysUnknown(t *testing.T) {
	data, err := ledger.ParseDataPrograms("all")
	ledgertest.Must(t, err)
	play(t, Config{Data: data, MaxAccounts: 4 << 10}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11)
		n.hold(keyOf(1), 500, ledger.VoteProgram, make([]byte, 8<<10))
		state, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Confirmed)
		ledgertest.Must(t, err)
		want := ledger.AccountWrite{Pubkey: keyOf(1), Lamports: 500, Owner: ledger.VoteProgram, RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll}
		ledgertest.Equal(t, state.Accounts, []ledger.AccountWrite{want}, "what is told")
	})
}
