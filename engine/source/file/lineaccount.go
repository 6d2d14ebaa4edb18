package file

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// lineAccounts are the accounts of a line. Those with mint facts but no lamports teach these facts alone.
type lineAccounts struct {
	data   *nodejson.DataDecoder
	writes []ledger.AccountWrite
	mints  []ledger.MintWrite
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *lineAccounts) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var a lineAccount
	return eachItem(dec, &a, func() error {
		w, err := a.write(l.data)
		if a.Lamports != nil {
			l.writes = append(l.writes, w)
		} else if err == nil {
			l.mints = append(l.mints, ledger.MintWrite{Pubkey: w.Pubkey, Mint: *w.Mint})
		}
		return err
	})
}

// lineAccount is an account, with its data or its facts. What is nil is not known.
type lineAccount struct {
	Pubkey     *ledger.Pubkey                  `json:"pubkey"`
	Lamports   *ledger.Lamports                `json:"lamports"`
	Owner      *ledger.Pubkey                  `json:"owner"`
	Executable *bool                           `json:"executable"`
	RentEpoch  *uint64                         `json:"rent_epoch"`
	ReadOnly   bool                            `json:"read_only"`
	Data       *jsontext.Value                 `json:"data"`
	Bytes      *jsontext.Value                 `json:"bytes"` // data beside facts
	Token      *lineFacts[nodejson.TokenFacts] `json:"token"`
	Mint       *lineFacts[nodejson.MintFacts]  `json:"mint"`
}

// lineFacts are what an account is, nil where the line says false: it is known to be none.
type lineFacts[T any] struct{ facts *T }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *lineFacts[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'f' {
		return dec.SkipValue()
	}
	return json.UnmarshalDecode(dec, &f.facts)
}

// write returns what the account says.
func (a *lineAccount) write(data *nodejson.DataDecoder) (w ledger.AccountWrite, err error) {
	switch {
	case a.Pubkey == nil:
		return w, nodejson.Missing("pubkey")
	case a.Lamports == nil && (a.Mint == nil || a.Mint.facts == nil):
		return w, nodejson.Missing("lamports")
	case a.Data != nil && (a.Token != nil || a.Mint != nil):
		return w, errors.New("it has both data and facts")
	case (a.Data != nil || a.Bytes != nil) && a.Owner == nil:
		return w, errors.New("data without owner")
	}
	w.Pubkey, w.ReadOnly = *a.Pubkey, a.ReadOnly
	if a.Lamports != nil {
		w.Lamports = *a.Lamports
	}
	if a.Owner != nil {
		w.Owner, w.Known = *a.Owner, w.Known|ledger.FieldOwner
	}
	if a.Executable != nil {
		w.Executable, w.Known = *a.Executable, w.Known|ledger.FieldExecutable
	}
	if a.RentEpoch != nil {
		w.RentEpoch, w.Known = *a.RentEpoch, w.Known|ledger.FieldRentEpoch
	}
	if err := a.teach(&w); err != nil {
		return w, err
	}
	for _, text := range []*jsontext.Value{a.Data, a.Bytes} {
		if text == nil {
			continue
		}
		raw, err := data.Decode(*text, "base64")
		if err != nil {
			return w, err
		}
		if text == a.Data {
			w.SetTokenFacts(raw)
		}
		w.SetData(raw, data.Held)
	}
	return w, nil
}

// teach adds the facts to a write.
func (a *lineAccount) teach(w *ledger.AccountWrite) error {
	if a.Token != nil {
		w.Known |= ledger.FieldToken
		if facts := a.Token.facts; facts != nil {
			if err := facts.Teach(w); err != nil {
				return fmt.Errorf("token: %w", err)
			}
		}
	}
	if a.Mint != nil {
		w.Known |= ledger.FieldMint
		if facts := a.Mint.facts; facts != nil {
			mint, err := facts.Mint()
			if err != nil {
				return fmt.Errorf("mint: %w", err)
			}
			w.Mint = &mint
		}
	}
	return nil
}
