package ledgertest

import (
	"os"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
)

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

// ReadFile returns what a file holds.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	Must(t, err)
	return content
}

// Equal notes an error unless two values are deeply equal. The text says what they are of, as in fmt.Sprintf.
func Equal[T any](t interface {
	Helper()
	Errorf(string, ...any)
}, got, want T, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
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
