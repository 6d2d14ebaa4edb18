package nodejson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// PlainError says what is wrong with JSON by field and kind. The errors of
// encoding/json quote the input, which must not reach a log.
func PlainError(err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch):
		field := mismatch.Field
		if i := strings.LastIndexByte(field, '.'); i >= 0 {
			field = field[i+1:]
		}
		if field == "" {
			return errors.New("not a JSON object of the recorded forms")
		}
		return fmt.Errorf("%s is of the wrong type or out of range", field)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends inside a JSON value")
	case errors.As(err, &syntax):
		if strings.HasPrefix(syntax.Error(), "unexpected end") {
			return errors.New("it ends inside a JSON value")
		}
		return errors.New("malformed JSON")
	}
	return err
}

// fieldError says what is wrong with a field.
func fieldError(field, what string) error { return errors.New(field + " " + what) }

// Missing says that a field is not there.
func Missing(field string) error { return fieldError(field, "is missing") }
