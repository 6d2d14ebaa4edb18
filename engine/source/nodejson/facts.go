package nodejson

import (
	"cmp"
	"errors"
	"slices"

	"ledgerd/engine/ledger"
)

// TokenStates are the names of the states, by their numbers.
var TokenStates = []string{
	ledger.TokenUninitialized: "uninitialized",
	ledger.TokenInitialized:   "initialized",
	ledger.TokenFrozen:        "frozen",
}

// TokenFacts are the facts of a token account, spelled out. Without a state only the
// balance is known.
type TokenFacts struct {
	Mint            *string `json:"mint"`
	Owner           *string `json:"owner"` // null: the wallet is not known
	Amount          *string `json:"amount"`
	State           *string `json:"state"`
	Delegate        *string `json:"delegate"`
	DelegatedAmount *string `json:"delegated_amount"`
	CloseAuthority  *string `json:"close_authority"`
	IsNative        *bool   `json:"is_native"` // follows from the mint
}

// Teach adds the facts to a write.
func (f *TokenFacts) Teach(w *ledger.AccountWrite) error {
	if f.Mint == nil {
		return Missing("mint")
	}
	mint, mintErr := parseKey("mint", *f.Mint)
	owner, ownerErr := parseOptKey("owner", f.Owner)
	amount, amountErr := parseAmount("amount", f.Amount)
	details, err := f.details()
	t := &ledger.TokenAccount{Mint: mint, Owner: owner.Value, Amount: amount, Details: details}
	switch err := cmp.Or(mintErr, ownerErr, amountErr, err); {
	case err != nil:
		return err
	case !owner.Known && t.Details.Known:
		return errors.New("a token account with a state has no owner")
	case f.IsNative != nil && *f.IsNative != t.IsNative():
		return errors.New("is_native contradicts the mint")
	}
	w.Token, w.TokenOwnerUnknown = t, !owner.Known
	return nil
}

// details returns what only the account's data shows, unknown without a state.
func (f *TokenFacts) details() (unknown ledger.Opt[ledger.TokenDetails], err error) {
	if f.State == nil {
		if f.Delegate != nil || f.DelegatedAmount != nil || f.CloseAuthority != nil {
			return unknown, Missing("state")
		}
		return unknown, nil
	}
	state := slices.Index(TokenStates, *f.State)
	if state < 0 {
		return unknown, errors.New("state is neither initialized nor frozen")
	}
	d := ledger.TokenDetails{State: ledger.TokenState(state)}
	if f.DelegatedAmount != nil {
		d.DelegatedAmount, err = parseAmount("delegated_amount", f.DelegatedAmount)
	}
	var delegate, authority error
	d.Delegate, delegate = parseOptKey("delegate", f.Delegate)
	d.CloseAuthority, authority = parseOptKey("close_authority", f.CloseAuthority)
	return ledger.Some(d), cmp.Or(delegate, err, authority)
}

// MintFacts are the facts of a mint, spelled out. A null is not known.
type MintFacts struct {
	Decimals *uint8  `json:"decimals"`
	Supply   *string `json:"supply"`
	Scaled   *bool   `json:"scaled"`
}

// Mint returns the facts as the ledger keeps them.
func (f *MintFacts) Mint() (ledger.Mint, error) {
	if f.Decimals == nil {
		return ledger.Mint{}, Missing("decimals")
	}
	m := ledger.Mint{Decimals: *f.Decimals, Scaled: Optional(f.Scaled)}
	var err error
	if m.Supply.Known = f.Supply != nil; m.Supply.Known {
		m.Supply.Value, err = parseAmount("supply", f.Supply)
	}
	return m, err
}
