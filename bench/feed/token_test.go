package feed

import (
	"bytes"
	"testing"

	"ledgerd/engine/ledger"
)

func TestTokenAccountsAreAsManyAsSaid(t *testing.T) {
	var file bytes.Buffer
	c := Config{Accounts: 1000, Updates: 500, Tokens: 30}
	f, err := New(&file, c)
	if err == nil {
		_, err = f.Block()
	}
	must(t, err)
	held, updated, wallets := 0, 0, make(map[ledger.Pubkey]int)
	for _, e := range read(t, &file) {
		switch e := e.(type) {
		case *ledger.BaseState:
			for i, a := range e.Accounts {
				if a.Token == nil {
					continue
				}
				held++
				wallets[a.Token.Owner]++
				if a.Owner != ledger.TokenProgram || a.Token.Mint != Mint(i) || a.Token.Amount != uint64(e.Slot) {
					t.Errorf("account %d: %+v", i, a)
				}
			}
		case *ledger.Block:
			for _, a := range e.Accounts {
				if a.Token != nil && a.Token.Amount == uint64(e.Slot) {
					updated++
				}
			}
		}
	}
	if held != 300 || updated != 150 || len(wallets) != 80 {
		t.Errorf("%d token accounts of %d wallets, %d updated, want 300 of 80, and 150", held, len(wallets), updated)
	}
}
