package nodejson

import (
	"encoding/json"

	"ledgerd/engine/ledger"
)

// parsedData is account data as a node shows it in encoding jsonParsed, for the programs
// whose facts are kept.
type parsedData struct {
	Program string `json:"program"`
	Parsed  struct {
		Type string          `json:"type"`
		Info json.RawMessage `json:"info"`
	} `json:"parsed"`
}

// parsedInfo is the info of a token account or of a mint.
type parsedInfo struct {
	Mint        *string `json:"mint"`
	Owner       *string `json:"owner"`
	State       *string `json:"state"`
	TokenAmount struct {
		Amount *string `json:"amount"`
	} `json:"tokenAmount"`
	Delegate        *string `json:"delegate"`
	DelegatedAmount struct {
		Amount *string `json:"amount"`
	} `json:"delegatedAmount"`
	CloseAuthority *string `json:"closeAuthority"`

	Decimals   *uint8  `json:"decimals"`
	Supply     *string `json:"supply"`
	Extensions []struct {
		Extension string `json:"extension"`
	} `json:"extensions"`
}

// teachParsedData adds the token facts of parsed data to the write. Other programs' accounts
// are known to be neither a token account nor a mint.
func teachParsedData(w *ledger.AccountWrite, data json.RawMessage) error {
	var d parsedData
	if err := json.Unmarshal(data, &d); err != nil {
		return PlainError(err)
	}
	if d.Program == "" {
		return errDataForm
	}
	w.Known |= ledger.FieldToken | ledger.FieldMint
	if d.Program != "spl-token" && d.Program != "spl-token-2022" {
		return nil
	}
	if d.Parsed.Info == nil {
		return Missing("info")
	}
	var p parsedInfo
	if err := json.Unmarshal(d.Parsed.Info, &p); err != nil {
		return PlainError(err)
	}
	switch d.Parsed.Type {
	case "account":
		facts := TokenFacts{
			Mint: p.Mint, Owner: p.Owner, Amount: p.TokenAmount.Amount, State: p.State,
			Delegate: p.Delegate, DelegatedAmount: p.DelegatedAmount.Amount, CloseAuthority: p.CloseAuthority,
		}
		return facts.Teach(w)
	case "mint":
		scaled := false
		for _, e := range p.Extensions {
			scaled = scaled || e.Extension == "scaledUiAmountConfig" || e.Extension == "interestBearingConfig"
		}
		facts := MintFacts{Decimals: p.Decimals, Supply: p.Supply, Scaled: &scaled}
		mint, err := facts.Mint()
		w.Mint = &mint
		return err
	}
	return nil
}
