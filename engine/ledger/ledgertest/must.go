package ledgertest

import "ledgerd/engine/ledger"

// Must fails the test at an error.
func Must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// CloneAccount returns a copy that stays valid after the visit that the account was handed to.
func CloneAccount(a *ledger.Account) *ledger.Account {
	c := *a
	if a.Token != nil {
		c.Token = new(*a.Token)
	}
	if a.FieldProvenance != nil {
		c.FieldProvenance = new(*a.FieldProvenance)
	}
	return &c
}
