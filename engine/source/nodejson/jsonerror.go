package nodejson

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AsTold lets nodes tell more than JSON may: a field twice, of which the last counts, and texts that are no UTF-8.
var AsTold = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Unmarshal reads JSON of a node. Its errors are those of PlainError.
func Unmarshal(text []byte, to any) error { return PlainError(json.Unmarshal(text, to, AsTold)) }

// PlainError says what is wrong with JSON, and where, as a JSON pointer. It quotes nothing but the names of known fields: the input
// must not reach a log.
func PlainError(err error) error {
	wrong, isWrong := errors.AsType[*json.SemanticError](err)
	_, isMalformed := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case isWrong && wrong.JSONPointer == "" && wrong.Err == nil:
		return errors.New("not a JSON object of the recorded forms")
	case isWrong && (wrong.Err == nil || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange)):
		return fmt.Errorf("%s is of the wrong type or out of range", wrong.JSONPointer)
	case isWrong && wrong.JSONPointer == "":
		return wrong.Err
	case isWrong:
		return fmt.Errorf("%s: %w", wrong.JSONPointer, wrong.Err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends inside a JSON value")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("a field is given twice")
	case isMalformed:
		return errors.New("malformed JSON")
	}
	return err
}

// fieldError says what is wrong with a field.
func fieldError(field, what string) error { return errors.New(field + " " + what) }

// Missing says that a field is not there.
func Missing(field string) error { return fieldError(field, "is missing") }
