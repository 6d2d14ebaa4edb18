package file

import (
	"encoding/json"
	"errors"
)

// facts are what a line says of an account as a token account or as a mint: an object, or
// false where it is known to be none. Absent and null are unknown.
type facts[T any] struct {
	known bool
	value *T // nil: it is none
}

var errFacts = errors.New("facts are neither an object nor false")

// UnmarshalJSON implements json.Unmarshaler.
func (f *facts[T]) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case string(b) == "false":
		f.known = true
		return nil
	case b[0] != '{':
		return errFacts
	}
	f.known, f.value = true, new(T)
	return json.Unmarshal(b, f.value)
}
