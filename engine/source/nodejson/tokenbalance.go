package nodejson

import (
	"cmp"
	"errors"
	"strings"

	"ledgerd/engine/ledger"
)

// tokenBalanceJSON is one row of a transaction's token balances.
type tokenBalanceJSON struct {
	AccountIndex  *int    `json:"accountIndex"`
	Mint          string  `json:"mint"`
	Owner         *string `json:"owner"`     // nil: the years that did not record it
	ProgramID     *string `json:"programId"` // nil: likewise
	UITokenAmount struct {
		Amount         *string `json:"amount"`
		Decimals       *uint8  `json:"decimals"`
		UIAmountString *string `json:"uiAmountString"`
	} `json:"uiTokenAmount"`
}

// account returns which of so many accounts the row is about.
func (r *tokenBalanceJSON) account(accounts int) (int, error) {
	if r.AccountIndex == nil || *r.AccountIndex < 0 || *r.AccountIndex >= accounts {
		return 0, errors.New("accountIndex names no account")
	}
	return *r.AccountIndex, nil
}

// teach adds the row's facts to the write of its account, and those of its mint.
func (r *tokenBalanceJSON) teach(w *ledger.AccountWrite, writes *blockWrites) error {
	mint, mintErr := parseKey("mint", r.Mint)
	amount, amountErr := parseAmount("amount", r.UITokenAmount.Amount)
	wallet, walletErr := parseOptKey("owner", r.Owner)
	program, err := parseOptKey("programId", r.ProgramID)
	if err := cmp.Or(mintErr, amountErr, walletErr, err); err != nil {
		return err
	}
	if program.Known {
		w.Owner = program.Value
		w.Known |= ledger.FieldOwner
	}
	w.Known |= ledger.FieldToken
	w.Token = &ledger.TokenAccount{Mint: mint, Owner: wallet.Value, Amount: amount}
	w.TokenOwnerUnknown = !wallet.Known

	if r.UITokenAmount.Decimals == nil {
		return Missing("decimals")
	}
	facts := ledger.Mint{Decimals: *r.UITokenAmount.Decimals}
	if s := r.UITokenAmount.UIAmountString; s != nil && !isPlainUIAmount(*s, amount, facts.Decimals) {
		facts.Scaled = ledger.Some(true)
	}
	writes.learnMint(mint, facts)
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
