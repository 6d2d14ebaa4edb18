package feed

import (
	"bytes"
	"testing"

	"ledgerd/engine/ledger"
)

// Of every hundred accounts so many hold as many tokens as lamports; those of one wallet may be anywhere.
func TestTokenAccountsAreAsManyAsSaid(t *testing.T) {
	c := Config{Accounts: 1000, Updates: 500, Tokens: 30}
	held, wallets := 0, make(map[ledger.Pubkey]int)
	for i := range c.Accounts {
		a := c.Account(i, 77)
		if a.Token == nil {
			continue
		}
		held++
		wallets[a.Token.Owner]++
		if a.Owner != ledger.TokenProgram || a.Token.Mint != Mint(i) || a.Token.Amount != 77 {
			t.Errorf("account %d: %+v", i, a)
		}
	}
	c.Data = 304
	before, after := c.Account(1, 77).Data.Bytes(), c.Account(1, 78).Data.Bytes()
	if bytes.Equal(before, after) || !bytes.Equal(before[:152], after[:152]) || !bytes.Equal(before[152+ChangedBytes:], after[152+ChangedBytes:]) {
		t.Errorf("%x becomes %x, want %d bytes in the middle to change", before, after, ChangedBytes)
	}
	if held != 300 || len(wallets) != 80 {
		t.Errorf("%d token accounts of %d wallets, want 300 of 80", held, len(wallets))
	}
}
