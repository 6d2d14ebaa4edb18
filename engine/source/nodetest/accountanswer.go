package nodetest

import (
	"encoding/base64"

	"ledgerd/engine/ledger"
)

// maxKeys is how many accounts may be asked for at once.
const maxKeys = 100

// getMultipleAccounts answers accounts in the order asked for, as they stand at the newest block of the commitment asked
// for; null for those that do not exist.
func (c *Call) getMultipleAccounts(chain Chain) (any, *CallError) {
	var keys []ledger.Pubkey
	level, failed := c.read(&keys)
	slot := chain.Context(level)
	switch {
	case failed != nil:
		return nil, failed
	case c.Options.MinContext != nil && slot < ledger.Slot(*c.Options.MinContext):
		return nil, &CallError{-32016, "Minimum context slot has not been reached"}
	case len(keys) > maxKeys:
		return nil, invalid("Too many inputs provided; max 100")
	case c.Options.Encoding != "base64":
		return nil, invalid("this node knows no encoding of accounts but base64")
	}
	values := make([]any, len(keys))
	for i, key := range keys {
		if w, data := chain.Account(key, slot); w != nil {
			values[i] = accountAnswer(w, data, (*slice)(c.Options.DataSlice))
		}
	}
	return object{"context": object{"apiVersion": "3.0.6", "slot": slot}, "value": values}, nil
}

// accountAnswer spells an account.
func accountAnswer(w *ledger.AccountWrite, data []byte, part *slice) object {
	space := len(data)
	if part != nil {
		from := min(part.Offset, uint64(space))
		data = data[from : from+min(part.Length, uint64(space)-from)]
	}
	return object{
		"data": []string{base64.StdEncoding.EncodeToString(data), "base64"}, "executable": w.Executable, "lamports": w.Lamports,
		"owner": w.Owner, "rentEpoch": w.RentEpoch, "space": space,
	}
}
