package nodejson

import (
	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/ledger"
)

// Account is an account as getAccountInfo and the command line's --output json show it.
// What is absent or null is unknown.
type Account struct {
	Pubkey     Key            `json:"pubkey"`
	Lamports   *uint64        `json:"lamports"`
	Owner      Key            `json:"owner"`
	Executable *bool          `json:"executable"`
	RentEpoch  *Epoch         `json:"rentEpoch"`
	Space      *uint64        `json:"space"` // size of the whole data
	Data       jsontext.Value `json:"data"`
}

// Write returns what the account shows, and its data, nil where there is none or it is parsed. The data must be whole to tell token facts: a node
// that was asked for a slice of it says the size of the whole.
func (a *Account) Write(decoder *DataDecoder) (w ledger.AccountWrite, data []byte, err error) {
	w = ledger.AccountWrite{Pubkey: a.Pubkey.Value, Owner: a.Owner.Value}
	switch {
	case !a.Pubkey.Known:
		return w, nil, fieldError("pubkey", "is neither in the object nor in the name of the file")
	case a.Lamports == nil:
		return w, nil, Missing("lamports")
	}
	w.Lamports = ledger.Lamports(*a.Lamports)
	if a.Owner.Known {
		w.Known |= ledger.FieldOwner
	}
	if a.Executable != nil {
		w.Executable = *a.Executable
		w.Known |= ledger.FieldExecutable
	}
	if a.RentEpoch != nil {
		w.RentEpoch = uint64(*a.RentEpoch)
		w.Known |= ledger.FieldRentEpoch
	}
	switch {
	case len(a.Data) == 0 || string(a.Data) == "null":
	case a.Data[0] == '{':
		err = teachParsedData(&w, a.Data)
	default:
		data, err = decoder.Decode(a.Data, "base58")
		if err == nil && a.Owner.Known && (a.Space == nil || *a.Space == uint64(len(data))) {
			w.SetTokenFacts(data)
			w.SetData(data, decoder.Held)
		}
	}
	return w, data, err
}
