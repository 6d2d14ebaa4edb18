package codec

import (
	"testing"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
)

// TestStateTermFollowsTheState is a test of package ledger that needs the generators of this one.
func TestStateTermFollowsTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genAccount(t), genAccount(t)
		if rapid.Bool().Draw(t, "alike") {
			account, fields := b.Provenance, b.FieldProvenance
			b = a
			b.Provenance, b.FieldProvenance = account, fields
		}
		b.Pubkey = a.Pubkey
		a.Lamports |= 1
		b.Lamports |= 1
		if same, terms := a.SameState(&b), a.StateTerm() == b.StateTerm(); same != terms {
			t.Fatalf("%+v\n%+v\nsame state: %v, same term: %v", a, b, same, terms)
		}
		a.Lamports = 0
		if a.StateTerm() != (ledger.StateHash{}) {
			t.Fatalf("a tombstone has the term %s", a.StateTerm())
		}
		key, m, n := genKey(t), genMint(t), genMint(t)
		if same, terms := m.SameFacts(&n), m.StateTerm(key) == n.StateTerm(key); same != terms {
			t.Fatalf("%+v\n%+v\nsame facts: %v, same term: %v", m, n, same, terms)
		}
	})
}
