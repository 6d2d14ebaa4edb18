package nodejson

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// PlainError says what is wrong with JSON by field and kind. The errors of
// encoding/json quote the input, which must not reach a log.
func PlainError(err error) error {
	mismatch, isMismatch := errors.AsType[*json.UnmarshalTypeError](err)
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case isMismatch && mismatch.Field == "":
		return errors.New("not a JSON object of the recorded forms")
	case isMismatch:
		return fieldError(mismatch.Field[strings.LastIndexByte(mismatch.Field, '.')+1:], "is of the wrong type or out of range")
	case errors.Is(err, io.ErrUnexpectedEOF), isSyntax && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return errors.New("it ends inside a JSON value")
	case isSyntax:
		return errors.New("malformed JSON")
	}
	return err
}

// fieldError says what is wrong with a field.
func fieldError(field, what string) error { return errors.New(field + " " + what) }

// Missing says that a field is not there.
func Missing(field string) error { return fieldError(field, "is missing") }
