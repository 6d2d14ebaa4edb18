package rpc

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

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
			ledgertest.Equal(t, len(n.asked), calls, "%s: calls", name)
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

func TestFetchTellsWhatIsNotThereAndWhy(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		n.add(10, 11)
		n.hold(keyOf(2), 5, ledger.SystemProgram, nil)
		n.finalized = 11
		state, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1), keyOf(2)}, ledger.Finalized)
		if err != nil || len(state.Accounts) != 2 {
			t.Fatalf("got %+v, %v", state, err)
		}
		ledgertest.Equal(t, state.Accounts[0], ledger.AccountWrite{Pubkey: keyOf(1)}, "what is told of what is not there")
		ledgertest.Equal(t, state.Accounts[1].Lamports, 5, "lamports of the other")
		s.final.Store(12) // the answer must not be older than what was emitted as final
		busy := ledger.UpstreamError{Busy: true}
		limited := ledger.UpstreamError{Busy: true, RetryAfter: 9 * time.Second}
		for _, step := range []struct {
			name   string
			answer answer
			want   ledger.UpstreamError
			calls  int
		}{
			{"old", nil, busy, 1},
			{"old, minContextSlot passed over", gives(`{"context":{"slot":11},"value":[null]}`), busy, 1},
			{"limited", says(429, "", "Retry-After", "9"), limited, 1},
			{"while limited", nil, limited, 0},
			{"down", says(500, ""), ledger.UpstreamError{}, 1},
		} {
			if step.name == "down" {
				time.Sleep(10 * time.Second)
			}
			calls := n.calls["getMultipleAccounts"]
			n.fault = step.answer
			_, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized)
			up, ok := errors.AsType[*ledger.UpstreamError](err)
			if !ok || up.Busy != step.want.Busy || up.RetryAfter != step.want.RetryAfter || !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%s: err = %v", step.name, err)
			}
			ledgertest.Equal(t, n.calls["getMultipleAccounts"]-calls, step.calls, "%s: calls", step.name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Fetch(ctx, []ledger.Pubkey{keyOf(1)}, ledger.Finalized)
		ledgertest.ErrorIs(t, err, context.Canceled, "given up")
	})
}

// The node gets on between the two calls that a mint with extensions takes: no value may be told as of a slot
// that is not its own, and what is another account then tells nothing of the first.
func TestAFetchTellsOneMoment(t *testing.T) {
	mint, holder, plain := keyOf(1), keyOf(2), keyOf(3)
	for name, tt := range map[string]struct {
		next fakeAccount // the mint at the second call
		told bool        // else it is to be asked for again
	}{
		"more":            {fakeAccount{501, ledger.Token2022Program, scaledMint(10, 3)}, true},
		"closed":          {fakeAccount{}, false},
		"another program": {fakeAccount{500, ledger.VoteProgram, scaledMint(9, 3)}, false},
		"other decimals":  {fakeAccount{500, ledger.Token2022Program, scaledMint(9, 4)}, false},
		"no extensions":   {fakeAccount{500, ledger.Token2022Program, scaledMint(9, 3)[:82]}, false},
	} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(10, 11, 12, 13)
			n.context = 11
			n.hold(mint, 500, ledger.Token2022Program, scaledMint(9, 3))
			n.hold(holder, 600, ledger.TokenProgram, holding(mint, plain, 5, ledger.Opt[ledger.Pubkey]{}))
			n.hold(plain, 700, ledger.SystemProgram, nil)
			n.fault = func(c *fakeCall) bool {
				if n.calls[c.Method] == 2 {
					n.context = 13
					n.accounts[mint] = tt.next
				}
				return false
			}
			state, err := s.Fetch(t.Context(), []ledger.Pubkey{mint, holder, plain}, ledger.Finalized)
			ledgertest.Equal(t, n.calls["getMultipleAccounts"], 2, "%s: calls for accounts", name)
			if !tt.told {
				if up, ok := errors.AsType[*ledger.UpstreamError](err); !ok || !up.Busy {
					t.Errorf("%s: got %+v, %v", name, state, err)
				}
				state, err = s.Fetch(t.Context(), []ledger.Pubkey{mint}, ledger.Finalized)
				if err != nil || len(state.Accounts) != 1 {
					t.Errorf("%s: again: got %+v, %v", name, state, err)
				}
				return
			}
			if err != nil || len(state.Accounts) != 3 || state.Slot != 11 {
				t.Fatalf("%s: got %+v, %v", name, state, err)
			}
			for _, w := range state.Accounts {
				if w.Pubkey == mint && (w.Lamports != 500 || w.Mint == nil || *w.Mint != *mintFacts(true)) {
					t.Errorf("%s: as of slot %d the mint is %+v, %+v", name, state.Slot, w, w.Mint)
				}
			}
		})
	}
}
