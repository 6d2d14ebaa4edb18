package arena

import (
	"testing"

	"ledgerd/engine/ledger"
)

// TestADroppedKeyIsNotFound drops keys that were found last. The zero key, that of the system program, is equal to what a free
// number has.
func TestADroppedKeyIsNotFound(t *testing.T) {
	var keys Keys
	for _, key := range []ledger.Pubkey{{}, {31: 7}} {
		r := keys.Use(&key)
		if found := keys.Find(&key); found != r {
			t.Errorf("%s has number %d, found %d", key, r, found)
		}
		if keys.Drop(r); keys.Find(&key) != 0 {
			t.Errorf("%s is found after it was dropped", key)
		}
	}
}
