package testnode

import (
	"encoding/base64"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger"
)

// maxKeys is how many accounts may be asked for at once.
const maxKeys = 100

// withContext says at which slot an answer holds.
func withContext(slot ledger.Slot, value any) object {
	return object{"context": object{"apiVersion": "3.0.6", "slot": slot}, "value": value}
}

// getAccountInfo answers an account: its key, and options.
func (n *Node) getAccountInfo(c *call) (any, *callError) {
	var key string
	if !c.parameter(0, &key) {
		return nil, invalid("Invalid params: invalid type")
	}
	values, slot, failed := n.accounts(c, []string{key})
	if failed != nil {
		return nil, failed
	}
	return withContext(slot, values[0]), nil
}

// getMultipleAccounts answers accounts in the order asked for; null for those that do not exist.
func (n *Node) getMultipleAccounts(c *call) (any, *callError) {
	var keys []string
	if !c.parameter(0, &keys) {
		return nil, invalid("Invalid params: invalid type")
	}
	if len(keys) > maxKeys {
		return nil, invalid("Too many inputs provided; max 100")
	}
	values, slot, failed := n.accounts(c, keys)
	if failed != nil {
		return nil, failed
	}
	return withContext(slot, values), nil
}

// accounts answers accounts as they stand at the newest block of the commitment asked for.
func (n *Node) accounts(c *call, keys []string) ([]any, ledger.Slot, *callError) {
	o, failed := c.options(1)
	if failed != nil {
		return nil, 0, failed
	}
	slot, _, failed := n.newest(&o)
	if failed != nil {
		return nil, 0, failed
	}
	values := make([]any, len(keys))
	for i, text := range keys {
		key, err := ledger.ParsePubkey(text)
		if err != nil {
			return nil, 0, invalid("Invalid param: Invalid")
		}
		w := n.ledger.at(key, slot)
		if w == nil {
			continue
		}
		if values[i], failed = accountAnswer(w, &o); failed != nil {
			return nil, 0, failed
		}
	}
	return values, slot, nil
}

// accountAnswer spells an account.
func accountAnswer(w *ledger.AccountWrite, o *options) (any, *callError) {
	data := accountData(w)
	space := len(data)
	if o.DataSlice != nil {
		from := min(o.DataSlice.Offset, uint64(space))
		data = data[from : from+min(o.DataSlice.Length, uint64(space)-from)]
	}
	var shown any
	switch o.Encoding {
	case "", "binary", "base58":
		if len(data) > 128 {
			return nil, invalid("Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.")
		}
		shown = base58.Encode(data)
		if o.Encoding == "base58" {
			shown = []string{base58.Encode(data), "base58"}
		}
	case "base64":
		shown = []string{base64.StdEncoding.EncodeToString(data), "base64"}
	default:
		return nil, invalid("Invalid params: unknown encoding `" + o.Encoding + "`")
	}
	return object{
		"data": shown, "executable": w.Executable, "lamports": w.Lamports, "owner": w.Owner,
		"rentEpoch": w.RentEpoch, "space": space,
	}, nil
}
