package nodejson

import (
	"errors"
	"strings"

	"ledgerd/engine/ledger"
)

// tokenBalanceJSON is one row of a transaction's token balances.
type tokenBalanceJSON struct {
	balanceOf
	Mint          *ledger.Pubkey `json:"mint"`
	Owner         *ledger.Pubkey `json:"owner"`     // nil: the years that did not record it
	ProgramID     *ledger.Pubkey `json:"programId"` // nil: likewise
	UITokenAmount struct {
		shownAmount
		Decimals       *uint8  `json:"decimals"`
		UIAmountString *string `json:"uiAmountString"`
	} `json:"uiTokenAmount"`
}

// balanceOf says which account of a transaction a row is about.
type balanceOf struct {
	AccountIndex *int `json:"accountIndex"`
}

// account returns which of so many accounts the row is about.
func (r *balanceOf) account(accounts int) (int, error) {
	if r.AccountIndex == nil || *r.AccountIndex < 0 || *r.AccountIndex >= accounts {
		return 0, errors.New("accountIndex names no account")
	}
	return *r.AccountIndex, nil
}

// teach adds the row's facts to the write of its account, and those of its mint.
func (r *tokenBalanceJSON) teach(w *ledger.AccountWrite, writes *blockWrites) error {
	shown, wallet := &r.UITokenAmount, Optional(r.Owner)
	switch {
	case r.Mint == nil:
		return Missing("mint")
	case shown.Amount == nil:
		return Missing("amount")
	case shown.Decimals == nil:
		return Missing("decimals")
	}
	if r.ProgramID != nil {
		w.Owner = *r.ProgramID
		w.Known |= ledger.FieldOwner
	}
	w.Known |= ledger.FieldToken
	w.Token = &ledger.TokenAccount{Mint: *r.Mint, Owner: wallet.Value, Amount: *shown.Amount}
	w.TokenOwnerUnknown = !wallet.Known

	facts := ledger.Mint{Decimals: *shown.Decimals}
	if s := shown.UIAmountString; s != nil && !isPlainUIAmount(*s, *shown.Amount, facts.Decimals) {
		facts.Scaled = ledger.Some(true)
	}
	writes.learnMint(*r.Mint, facts)
	return nil
}

// isPlainUIAmount reports whether the node showed an amount as it stands, neither scaled nor
// with interest. Early nodes wrote the zeros at the end.
func isPlainUIAmount(shown string, amount uint64, decimals uint8) bool {
	if strings.Contains(shown, ".") {
		shown = strings.TrimRight(strings.TrimRight(shown, "0"), ".")
	}
	var buf [32]byte
	return string(ledger.AppendUIAmount(buf[:0], amount, decimals)) == shown
}
