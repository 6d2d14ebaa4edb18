package rpc

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// scaledMint returns the data of a mint whose amounts are scaled, which the head does not tell.
func scaledMint(supply, decimals byte) []byte {
	data := make([]byte, 165, 200)
	data[36], data[44], data[45] = supply, decimals, 1
	return append(data, 1, 25, 0, 4, 0, 1, 2, 3, 4)
}

// The node gets on between the two calls that a mint with extensions takes: no value may be told as of a slot
// that is not its own.
func TestAFetchTellsOneMoment(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12, 13)
		mint, holder, plain := keyOf(1), keyOf(2), keyOf(3)
		n.context = 11
		n.hold(mint, 500, ledger.Token2022Program, scaledMint(9, 3))
		n.hold(holder, 600, ledger.TokenProgram, holding(mint, plain, 5, 0))
		n.hold(plain, 700, ledger.SystemProgram, nil)
		n.fault = func(_ http.ResponseWriter, method string, _ []json.RawMessage) bool {
			if method == "getMultipleAccounts" && n.calls[method] == 2 {
				n.context = 13
				n.mu.Unlock()
				n.hold(mint, 501, ledger.Token2022Program, scaledMint(10, 3))
				n.mu.Lock()
			}
			return false
		}
		s := New(n.config())
		defer s.CloseIdle()
		state, err := s.Fetch(t.Context(), []ledger.Pubkey{mint, holder, plain}, ledger.Finalized)
		if err != nil || len(state.Accounts) != 3 || state.Slot != 11 || n.calls["getMultipleAccounts"] != 2 {
			t.Fatalf("got %+v, %v after %v", state, err, n.calls)
		}
		for _, w := range state.Accounts {
			if w.Pubkey != mint {
				continue
			}
			if w.Lamports != 500 || w.Mint == nil || *w.Mint != (ledger.Mint{Decimals: 3, Supply: ledger.Some(uint64(9)), Scaled: ledger.Some(true)}) {
				t.Errorf("as of slot %d the mint is %+v, %+v", state.Slot, w, w.Mint)
			}
		}
	})
}

// What is another account when the rest of it is asked for tells nothing of the first.
func TestAMintThatIsReplacedBetweenTwoCallsIsAskedForAgain(t *testing.T) {
	replacements := map[string]func(n *fakeNode, mint ledger.Pubkey){
		"closed":          func(n *fakeNode, mint ledger.Pubkey) { delete(n.accounts, mint.String()) },
		"another program": func(n *fakeNode, mint ledger.Pubkey) { n.accounts[mint.String()] = n.accounts[keyOf(2).String()] },
		"other decimals":  func(n *fakeNode, mint ledger.Pubkey) { n.accounts[mint.String()] = n.accounts[keyOf(3).String()] },
		"no extensions":   func(n *fakeNode, mint ledger.Pubkey) { n.accounts[mint.String()] = n.accounts[keyOf(4).String()] },
	}
	for name, replace := range replacements {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11)
			mint := keyOf(1)
			n.hold(mint, 500, ledger.Token2022Program, scaledMint(9, 3))
			n.hold(keyOf(2), 500, ledger.VoteProgram, scaledMint(9, 3))
			n.hold(keyOf(3), 500, ledger.Token2022Program, scaledMint(9, 4))
			n.hold(keyOf(4), 500, ledger.Token2022Program, scaledMint(9, 3)[:82])
			n.fault = func(_ http.ResponseWriter, method string, _ []json.RawMessage) bool {
				if n.calls[method] == 2 {
					replace(n, mint)
				}
				return false
			}
			s := New(n.config())
			defer s.CloseIdle()
			state, err := s.Fetch(t.Context(), []ledger.Pubkey{mint}, ledger.Finalized)
			var up *ledger.UpstreamError
			if !errors.As(err, &up) || !up.Busy {
				t.Errorf("%s: got %+v, %v", name, state, err)
			}
			if state, err = s.Fetch(t.Context(), []ledger.Pubkey{mint}, ledger.Finalized); err != nil || len(state.Accounts) != 1 {
				t.Errorf("%s: again: got %+v, %v", name, state, err)
			}
		})
	}
}

// An answer that names a slot which never comes is given up: its accounts are asked for again.
func TestAnAnswerOfASlotThatNeverComesIsForgotten(t *testing.T) {
	for _, slot := range []ledger.Slot{1_000_000, 1 << 60, 1<<64 - 1} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			k := keyOf(1)
			n.add(10, 11)
			n.pay(11, 500, k)
			n.hold(k, 500, ledger.VoteProgram, nil)
			n.fault = func(_ http.ResponseWriter, method string, _ []json.RawMessage) bool {
				n.context = 0
				if method == "getMultipleAccounts" && n.calls[method] == 1 {
					n.context = slot
				}
				return false
			}
			go goesOn(n, 11, 1000)
			r := follow(t, New(n.config()), at(10), func(r *recorder) bool {
				a := stateAfter(r.events)[k]
				b, ok := r.events[len(r.events)-1].(*ledger.Block)
				return a != nil && a.Known&ledger.FieldOwner != 0 || ok && b.Slot == 1000
			})
			if a := stateAfter(r.events)[k]; a.Owner != ledger.VoteProgram {
				t.Errorf("slot %d: after %d events it is %+v", slot, len(r.events), a)
			}
		})
	}
}
