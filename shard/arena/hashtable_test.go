package arena

import (
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// TestAMissingEntryPanics replaces and removes entries that a part does not have: of another number, another hash, or of an
// empty part. Searching for ever would hide the fault and keep the shard locked.
func TestAMissingEntryPanics(t *testing.T) {
	for name, misuse := range map[string]func(full, empty *Part){
		"replace a number": func(full, _ *Part) { full.Replace(7, 99, 1) },
		"replace a hash":   func(full, _ *Part) { full.Replace(1007, 7, 1) },
		"remove":           func(full, _ *Part) { full.Remove(7, 99) },
		"replace in none":  func(_, empty *Part) { empty.Replace(7, 7, 1) },
		"remove from none": func(_, empty *Part) { empty.Remove(7, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			var full Part
			for n := range uint32(100) {
				full.Add(n, n)
			}
			defer func() {
				ledgertest.Holds(t, recover() != nil, "no panic")
			}()
			misuse(&full, new(Part))
		})
	}
}
