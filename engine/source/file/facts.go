package file

import (
	"encoding/json"
	"errors"
	"slices"

	"ledgerd/engine/ledger"
)

// tokenStates are the names of the states, by their numbers.
var tokenStates = []string{
	ledger.TokenUninitialized: "uninitialized",
	ledger.TokenInitialized:   "initialized",
	ledger.TokenFrozen:        "frozen",
}

// facts are what a line says of an account as a token account or as a mint: an object, or
// false where it is known to be none. Absent and null are unknown.
type facts[T any] struct {
	known bool
	value *T // nil: it is none
}

var errFacts = errors.New("facts are neither an object nor false")

// UnmarshalJSON implements json.Unmarshaler.
func (f *facts[T]) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case string(b) == "false":
		f.known = true
		return nil
	case b[0] != '{':
		return errFacts
	}
	f.known, f.value = true, new(T)
	return json.Unmarshal(b, f.value)
}

// tokenFacts are the facts of a token account in an event line. Without a state only the
// balance is known.
type tokenFacts[T jsonText] struct {
	Mint            *T    `json:"mint"`
	Owner           *T    `json:"owner"` // null: the wallet is not known
	Amount          *T    `json:"amount"`
	State           *T    `json:"state"`
	Delegate        *T    `json:"delegate"`
	DelegatedAmount *T    `json:"delegated_amount"`
	CloseAuthority  *T    `json:"close_authority"`
	IsNative        *bool `json:"is_native"` // follows from the mint
}

// teach adds the facts to a write.
func (f *tokenFacts[T]) teach(w *ledger.AccountWrite) error {
	if f.Mint == nil {
		return missing("mint")
	}
	mint, err := parseKey("mint", *f.Mint)
	if err != nil {
		return err
	}
	owner, err := parseOptKey("owner", f.Owner)
	if err != nil {
		return err
	}
	t := &ledger.TokenAccount{Mint: mint, Owner: owner.Value}
	if t.Amount, err = parseAmount("amount", f.Amount); err != nil {
		return err
	}
	if t.Details, err = f.details(); err != nil {
		return err
	}
	if !owner.Known && t.Details.Known {
		return errors.New("a token account with a state has no owner")
	}
	if f.IsNative != nil && *f.IsNative != t.IsNative() {
		return errors.New("is_native contradicts the mint")
	}
	w.Token, w.TokenOwnerUnknown = t, !owner.Known
	return nil
}

// details returns what only the account's data shows, unknown without a state.
func (f *tokenFacts[T]) details() (unknown ledger.Opt[ledger.TokenDetails], err error) {
	if f.State == nil {
		if f.Delegate != nil || f.DelegatedAmount != nil || f.CloseAuthority != nil {
			return unknown, missing("state")
		}
		return unknown, nil
	}
	state := slices.Index(tokenStates, string(*f.State))
	if state < 0 {
		return unknown, errors.New("state is neither initialized nor frozen")
	}
	d := ledger.TokenDetails{State: ledger.TokenState(state)}
	if d.Delegate, err = parseOptKey("delegate", f.Delegate); err != nil {
		return unknown, err
	}
	if f.DelegatedAmount != nil {
		if d.DelegatedAmount, err = parseAmount("delegated_amount", f.DelegatedAmount); err != nil {
			return unknown, err
		}
	}
	if d.CloseAuthority, err = parseOptKey("close_authority", f.CloseAuthority); err != nil {
		return unknown, err
	}
	return ledger.Some(d), nil
}

// mintFacts are the facts of a mint in an event line. A null is not known.
type mintFacts[T jsonText] struct {
	Decimals *uint8 `json:"decimals"`
	Supply   *T     `json:"supply"`
	Scaled   *bool  `json:"scaled"`
}

func (f *mintFacts[T]) mint() (ledger.Mint, error) {
	if f.Decimals == nil {
		return ledger.Mint{}, missing("decimals")
	}
	m := ledger.Mint{Decimals: *f.Decimals, Scaled: optional(f.Scaled)}
	if f.Supply != nil {
		n, err := parseAmount("supply", f.Supply)
		if err != nil {
			return m, err
		}
		m.Supply = ledger.Some(n)
	}
	return m, nil
}
