package nodejson

import (
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
	Mint            *ledger.Pubkey `json:"mint"`
	Owner           *ledger.Pubkey `json:"owner"` // null: the wallet is not known
	Amount          *uint64        `json:"amount,string"`
	State           *string        `json:"state"`
	Delegate        *ledger.Pubkey `json:"delegate"`
	DelegatedAmount *uint64        `json:"delegated_amount,string"`
	CloseAuthority  *ledger.Pubkey `json:"close_authority"`
	IsNative        *bool          `json:"is_native"` // follows from the mint
}

// Teach adds the facts to a write.
func (f *TokenFacts) Teach(w *ledger.AccountWrite) error {
	switch {
	case f.Mint == nil:
		return Missing("mint")
	case f.Amount == nil:
		return Missing("amount")
	}
	owner := Optional(f.Owner)
	details, err := f.details()
	t := &ledger.TokenAccount{Mint: *f.Mint, Owner: owner.Value, Amount: *f.Amount, Details: details}
	switch {
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
	return ledger.Some(ledger.TokenDetails{
		State: ledger.TokenState(state), Delegate: Optional(f.Delegate), DelegatedAmount: Optional(f.DelegatedAmount).Value,
		CloseAuthority: Optional(f.CloseAuthority),
	}), nil
}

// MintFacts are the facts of a mint, spelled out. A null is not known.
type MintFacts struct {
	Decimals *uint8  `json:"decimals"`
	Supply   *uint64 `json:"supply,string"`
	Scaled   *bool   `json:"scaled"`
}

// Mint returns the facts as the ledger keeps them.
func (f *MintFacts) Mint() (ledger.Mint, error) {
	if f.Decimals == nil {
		return ledger.Mint{}, Missing("decimals")
	}
	return ledger.Mint{Decimals: *f.Decimals, Supply: Optional(f.Supply), Scaled: Optional(f.Scaled)}, nil
}
