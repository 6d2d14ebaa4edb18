package file

import (
	"errors"

	"ledgerd/engine/ledger"
)

// tokenFacts are the facts of a token account in an event line. Without a state only the
// balance is known.
type tokenFacts struct {
	Mint            *string `json:"mint"`
	Owner           *string `json:"owner"` // null: the wallet is not known
	Amount          *string `json:"amount"`
	State           *string `json:"state"`
	Delegate        *string `json:"delegate"`
	DelegatedAmount *string `json:"delegated_amount"`
	CloseAuthority  *string `json:"close_authority"`
	IsNative        *bool   `json:"is_native"` // follows from the mint
}

// teach adds the facts to a write.
func (f *tokenFacts) teach(w *ledger.AccountWrite) error {
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
	w.Known |= ledger.FieldToken
	w.Token, w.TokenOwnerUnknown = t, !owner.Known
	return nil
}

// details returns what only the account's data shows, unknown without a state.
func (f *tokenFacts) details() (unknown ledger.Opt[ledger.TokenDetails], err error) {
	if f.State == nil {
		if f.Delegate != nil || f.DelegatedAmount != nil || f.CloseAuthority != nil {
			return unknown, missing("state")
		}
		return unknown, nil
	}
	var d ledger.TokenDetails
	switch *f.State {
	case "uninitialized":
		d.State = ledger.TokenUninitialized
	case "initialized":
		d.State = ledger.TokenInitialized
	case "frozen":
		d.State = ledger.TokenFrozen
	default:
		return unknown, errors.New("state is neither initialized nor frozen")
	}
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
type mintFacts struct {
	Decimals *uint8  `json:"decimals"`
	Supply   *string `json:"supply"`
	Scaled   *bool   `json:"scaled"`
}

func (f *mintFacts) mint() (ledger.Mint, error) {
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
