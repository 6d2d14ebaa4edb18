package testnode

import (
	"encoding/base64"

	"ledgerd/engine/ledger"
)

// maxKeys is how many accounts may be asked for at once.
const maxKeys = 100

// getMultipleAccounts answers accounts in the order asked for, as they stand at the newest block of the commitment asked
// for; null for those that do not exist.
func (n *Node) getMultipleAccounts(c *call) (any, *callError) {
	var keys []ledger.Pubkey
	slot, o, failed := n.newest(c, &keys)
	switch {
	case failed != nil:
		return nil, failed
	case len(keys) > maxKeys:
		return nil, invalid("Too many inputs provided; max 100")
	case o.Encoding != "base64":
		return nil, invalid("this node knows no encoding of accounts but base64")
	}
	values := make([]any, len(keys))
	for i, key := range keys {
		if w := n.ledger.at(key, slot); w != nil {
			values[i] = accountAnswer(w, o.DataSlice)
		}
	}
	return object{"context": object{"apiVersion": "3.0.6", "slot": slot}, "value": values}, nil
}

// accountAnswer spells an account.
func accountAnswer(w *ledger.AccountWrite, part *slice) object {
	data := accountData(w)
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
