package file

import (
	"encoding/json"

	"ledgerd/engine/ledger"
)

// accountJSON is an account as getAccountInfo and the command line's --output json show it.
// What is absent or null is unknown.
type accountJSON struct {
	Pubkey     key             `json:"pubkey"`
	Lamports   *uint64         `json:"lamports"`
	Owner      key             `json:"owner"`
	Executable *bool           `json:"executable"`
	RentEpoch  *uint64         `json:"rentEpoch"`
	Space      *uint64         `json:"space"` // size of the whole data
	Data       json.RawMessage `json:"data"`
}

// write returns what the account shows. Its data must be whole to tell token facts: a node
// that was asked for a slice of it says the size of the whole.
func (a *accountJSON) write(decoder *dataDecoder) (ledger.AccountWrite, error) {
	w := ledger.AccountWrite{Pubkey: a.Pubkey.Value, Owner: a.Owner.Value}
	switch {
	case !a.Pubkey.Known:
		return w, fieldError("pubkey", "is neither in the object nor in the name of the file")
	case a.Lamports == nil:
		return w, missing("lamports")
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
		w.RentEpoch = *a.RentEpoch
		w.Known |= ledger.FieldRentEpoch
	}
	if len(a.Data) == 0 || string(a.Data) == "null" {
		return w, nil
	}
	if a.Data[0] == '{' {
		return w, teachParsedData(&w, a.Data)
	}
	data, err := decoder.decode(a.Data)
	if err != nil {
		return w, err
	}
	if a.Owner.Known && (a.Space == nil || *a.Space == uint64(len(data))) {
		w.TeachData(data)
	}
	return w, nil
}

// keyInName returns the only public key in the name of a file.
func keyInName(name string) (found ledger.Opt[ledger.Pubkey]) {
	for len(name) > 0 {
		n := 0
		for n < len(name) && isAlphanumeric(name[n]) {
			n++
		}
		if k, err := ledger.ParsePubkey(name[:n]); err == nil {
			if found.Known && found.Value != k {
				return ledger.Opt[ledger.Pubkey]{}
			}
			found = ledger.Some(k)
		}
		name = name[max(n, 1):]
	}
	return found
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
