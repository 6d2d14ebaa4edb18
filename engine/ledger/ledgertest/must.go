package ledgertest

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// fails is a test that ends where it fails, or what has one.
type fails interface {
	Helper()
	Fatalf(string, ...any)
}

// Must fails the test at an error.
func Must(t fails, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// Mustf fails the test at an error. The text says what it comes from, as in fmt.Sprintf.
func Mustf(t fails, err error, what string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf(what+": %v", append(args, err)...)
	}
}

// MustHold fails the test unless a condition holds. The text says what is wrong else, as in fmt.Sprintf.
func MustHold(t fails, condition bool, wrong string, args ...any) {
	t.Helper()
	if !condition {
		t.Fatalf(wrong, args...)
	}
}

// ReadFile returns what a file holds.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	Must(t, err)
	return content
}

// notes is a test, or what has one.
type notes interface {
	Helper()
	Errorf(string, ...any)
}

// Holds notes an error unless a condition holds. The text says what is wrong else, as in fmt.Sprintf.
func Holds(t notes, condition bool, wrong string, args ...any) {
	t.Helper()
	if !condition {
		t.Errorf(wrong, args...)
	}
}

// Equal notes an error unless two values are deeply equal. The text says what they are of, as in fmt.Sprintf.
func Equal[T any](t notes, got, want T, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}

// ErrorIs notes an error unless errors.Is finds want in err; with nil there must be no error. The text says what err comes from, as in fmt.Sprintf.
func ErrorIs(t notes, err, want error, what string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf(what+": err = %v, want %v", append(args, err, want)...)
	}
}

// ErrorSays notes an error unless err has the words in its text.
func ErrorSays(t notes, err error, words, what string, args ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf(what+": err = %v, want one that says %q", append(args, err, words)...)
	}
}

// Contains notes an error unless a text contains a part. The last text says what it is, as in fmt.Sprintf.
func Contains(t notes, text, part, what string, args ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf(what+" lacks %q:\n%s", append(args, part, text)...)
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
