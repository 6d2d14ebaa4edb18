package file

import (
	"encoding/json"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// lineAccount is an account of an event line. It carries its data or its facts. One with
// mint facts but no lamports teaches these apart from the account.
type lineAccount[T nodejson.Text] struct {
	Pubkey     T               `json:"pubkey"`
	Lamports   *uint64         `json:"lamports"`
	Owner      *T              `json:"owner"`
	Executable *bool           `json:"executable"`
	RentEpoch  *uint64         `json:"rent_epoch"`
	Data       json.RawMessage `json:"data"`

	Token facts[nodejson.TokenFacts[T]] `json:"token"`
	Mint  facts[nodejson.MintFacts[T]]  `json:"mint"`
}

// writes returns the account writes and mint facts of a line, in its order.
func writes(list []lineAccount[string], data *nodejson.DataDecoder) ([]ledger.AccountWrite, []ledger.MintWrite, error) {
	accounts := make([]ledger.AccountWrite, 0, len(list))
	var mints []ledger.MintWrite
	for i := range list {
		a := &list[i]
		w, err := a.write(data)
		if err != nil {
			return nil, nil, fmt.Errorf("account %d: %w", i, err)
		}
		if a.Lamports == nil {
			mints = append(mints, ledger.MintWrite{Pubkey: w.Pubkey, Mint: *w.Mint})
		} else {
			accounts = append(accounts, w)
		}
	}
	return accounts, mints, nil
}

// write returns what the line shows of the account. Without lamports it has mint facts.
func (a *lineAccount[T]) write(data *nodejson.DataDecoder) (w ledger.AccountWrite, err error) {
	if w.Pubkey, err = nodejson.ParseKey("pubkey", a.Pubkey); err != nil {
		return w, err
	}
	if a.Lamports != nil {
		w.Lamports = ledger.Lamports(*a.Lamports)
	} else if a.Mint.value == nil {
		return w, nodejson.Missing("lamports")
	}
	owner, err := nodejson.ParseOptKey("owner", a.Owner)
	if err != nil {
		return w, err
	}
	if owner.Known {
		w.Owner = owner.Value
		w.Known |= ledger.FieldOwner
	}
	if a.Executable != nil {
		w.Executable = *a.Executable
		w.Known |= ledger.FieldExecutable
	}
	if a.RentEpoch != nil {
		w.RentEpoch = *a.RentEpoch
		w.Known |= ledger.FieldRentEpoch
	}
	return w, a.teachFacts(&w, data)
}

// teachFacts adds what the data or the facts of the account show.
func (a *lineAccount[T]) teachFacts(w *ledger.AccountWrite, data *nodejson.DataDecoder) error {
	if len(a.Data) > 0 && string(a.Data) != "null" {
		if a.Token.known || a.Mint.known {
			return errors.New("it has both data and facts")
		}
		if w.Known&ledger.FieldOwner == 0 {
			return errors.New("data without owner")
		}
		raw, err := data.DecodeLine(a.Data)
		if err != nil {
			return err
		}
		w.SetTokenFacts(raw)
		return nil
	}
	if a.Token.known {
		w.Known |= ledger.FieldToken
		if a.Token.value != nil {
			if err := a.Token.value.Teach(w); err != nil {
				return fmt.Errorf("token: %w", err)
			}
		}
	}
	if a.Mint.known {
		w.Known |= ledger.FieldMint
		if a.Mint.value != nil {
			m, err := a.Mint.value.Mint()
			if err != nil {
				return fmt.Errorf("mint: %w", err)
			}
			w.Mint = &m
		}
	}
	return nil
}
