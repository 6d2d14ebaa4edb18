package rpc

import (
	"testing"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// What the head of an account's data tells is what the whole would.
func TestTokenFactsComeFromTheHeadOfTheData(t *testing.T) {
	mint, wallet, none := keyOf(7), keyOf(8), ledger.Opt[ledger.Pubkey]{}
	account := holding(mint, wallet, 5, ledger.Some(keyOf(9)))
	extended := append(append(holding(mint, wallet, 6, none), 2), make([]byte, 40)...)
	scaled := agavetest.MintData(&ledger.Mint{Decimals: 3, Supply: ledger.Some(uint64(9)), Scaled: ledger.Some(true)})
	metadata := append([]byte{19, 0, 0, headBytes >> 8}, make([]byte, headBytes)...)
	for name, tt := range map[string]struct {
		owner ledger.Pubkey
		data  []byte
	}{
		"token account":          {ledger.TokenProgram, account},
		"extended token account": {ledger.Token2022Program, extended},
		"mint":                   {ledger.TokenProgram, scaled[:82]},
		"mint with extensions":   {ledger.Token2022Program, scaled},
		"mint with metadata":     {ledger.Token2022Program, append(scaled, metadata...)},
		"multisig":               {ledger.Token2022Program, append(append(holding(mint, wallet, 7, none), 2), make([]byte, 355-166)...)},
		"too long for a token":   {ledger.TokenProgram, extended},
		"another program":        {ledger.VoteProgram, make([]byte, 2*headBytes)},
	} {
		for _, held := range []string{"none", "all", ledger.VoteProgram.String()} {
			data, err := ledger.ParseDataPrograms(held)
			ledgertest.Must(t, err)
			play(t, Config{Data: data}, func(t *testing.T, n *fakeNode, s *Source) {
				n.add(10, 11, 12)
				n.finalized = 11 // what is confirmed alone is not told
				n.hold(keyOf(1), 500, tt.owner, tt.data)
				got, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized)
				ledgertest.Must(t, err)
				want := ledger.AccountWrite{Pubkey: keyOf(1), Lamports: 500, Owner: tt.owner, RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll}
				want.SetTokenFacts(tt.data)
				want.SetData(tt.data, data)
				ledgertest.Equal(t, got, &ledger.BaseState{Slot: 11, Accounts: []ledger.AccountWrite{want}}, "%s, data of %s: the answer", name, held)
			})
		}
	}
}

// Accounts whose data is more than an answer may have are told without it.
func TestDataThatIsTooLargeStaysUnknown(t *testing.T) {
	data, err := ledger.ParseDataPrograms("all")
	ledgertest.Must(t, err)
	play(t, Config{Data: data, MaxAccounts: 8 << 10}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11)
		n.hold(keyOf(1), 500, ledger.VoteProgram, make([]byte, 16<<10))
		state, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Confirmed)
		ledgertest.Must(t, err)
		want := ledger.AccountWrite{Pubkey: keyOf(1), Lamports: 500, Owner: ledger.VoteProgram, RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll}
		ledgertest.Equal(t, state.Accounts, []ledger.AccountWrite{want}, "what is told")
	})
}
