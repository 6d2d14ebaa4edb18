package nodejson

import (
	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/ledger"
)

// parsedData is account data as a node shows it in encoding jsonParsed, for the programs
// whose facts are kept.
type parsedData struct {
	Program string `json:"program"`
	Parsed  struct {
		Type string         `json:"type"`
		Info jsontext.Value `json:"info"`
	} `json:"parsed"`
}

// parsedInfo is the info of a token account or of a mint.
type parsedInfo struct {
	Mint            *ledger.Pubkey `json:"mint"`
	Owner           *ledger.Pubkey `json:"owner"`
	State           *string        `json:"state"`
	TokenAmount     shownAmount    `json:"tokenAmount"`
	Delegate        *ledger.Pubkey `json:"delegate"`
	DelegatedAmount shownAmount    `json:"delegatedAmount"`
	CloseAuthority  *ledger.Pubkey `json:"closeAuthority"`

	Decimals   *uint8  `json:"decimals"`
	Supply     *uint64 `json:"supply,string"`
	Extensions []struct {
		Extension string `json:"extension"`
	} `json:"extensions"`
}

// shownAmount is an amount as a node shows it, beside what people read.
type shownAmount struct {
	Amount *uint64 `json:"amount,string"`
}

// teachParsedData adds the token facts of parsed data to the write. Other programs' accounts
// are known to be neither a token account nor a mint.
func teachParsedData(w *ledger.AccountWrite, data jsontext.Value) error {
	var d parsedData
	if err := Unmarshal(data, &d); err != nil {
		return err
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
	if err := Unmarshal(d.Parsed.Info, &p); err != nil {
		return err
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
