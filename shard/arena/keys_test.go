package arena

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var key = ledgertest.Key

// TestInternedKeysAreCounted uses and drops keys at random, many of which collide, and compares with
// a map of counts.
func TestInternedKeysAreCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var in Keys
	counts, given := make(map[ledger.Pubkey]int), make(map[ledger.Pubkey]Ref)
	for step := range 100_000 {
		k := key(r.IntN(1 + step/50%700))
		if n := counts[k]; n > 0 && r.IntN(2) == 0 {
			in.Drop(given[k])
			counts[k]--
			continue
		}
		name := in.Use(&k)
		if counts[k] > 0 && given[k] != name {
			t.Fatalf("step %d: a key has two names", step)
		}
		counts[k]++
		given[k] = name
	}
	held := 0
	for k, n := range counts {
		name, found := in.Find(&k)
		if found != (n > 0) || found && (name != given[k] || *in.Names.At(name) != k) {
			t.Errorf("%s is name %d (%v), want %d, counted %d", k, name, found, given[k], n)
		}
		if n > 0 {
			held++
		}
		for range n {
			in.Drop(given[k])
		}
		if _, found := in.Find(&k); found {
			t.Errorf("%s is found when nothing has it", k)
		}
	}
	if held == 0 || in.Len() != 0 || in.table.Len() != 0 || slices.Max(in.counts) != 0 {
		t.Errorf("%d names are taken after all of %d were dropped", in.Len(), held)
	}
	if zero, found := in.Find(&ledger.Pubkey{}); !found || zero != 0 || in.Use(&ledger.Pubkey{}) != 0 {
		t.Error("the key of zeros is not 0")
	}
}

// TestNoTableOfKeysIsLong uses many keys: a table that is resized stalls whoever adds a key by its length.
func TestNoTableOfKeysIsLong(t *testing.T) {
	const keys = 100_000
	var in Keys
	for i := range keys {
		k := key(i)
		in.Use(&k)
	}
	for i := range in.table.parts {
		if n := len(in.table.parts[i].Entries); n > keys/32 {
			t.Errorf("part %d has %d buckets for %d keys in all", i, n, keys)
		}
	}
}
