package stream

import (
	"encoding/json"

	"ledgerd/engine/ledger"
)

// list writes keys as the JSON list of a message.
func list(keys ...ledger.Pubkey) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k.String()
	}
	b, _ := json.Marshal(texts)
	return string(b)
}
