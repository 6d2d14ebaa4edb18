package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

var errSyntax = errors.New("malformed JSON")

// scanner reads the JSON of a line from front to end, without a tree of its values. The first error puts it at the end
// of the line, and every value after that is zero. Methods that take the name of a field show it in their errors.
type scanner struct {
	line  []byte
	at    int
	name  []byte // of the field whose value comes next
	first bool   // an object or a list was entered, and none of its items was read
	err   error
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.at = len(s.line)
}

func (s *scanner) wrongType(field string) {
	s.fail(fmt.Errorf("%s is of the wrong type or out of range", field))
}

// peek drops white space and returns the byte after it, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.line); s.at++ {
		if c := s.line[s.at]; c > ' ' || (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
			return c
		}
	}
	return 0
}

func (s *scanner) take(c byte) {
	if s.peek() != c {
		s.fail(errSyntax)
		return
	}
	s.at++
}

// literal consumes the word if it is what follows.
func (s *scanner) literal(word string) bool {
	s.peek()
	if rest := s.line[s.at:]; len(rest) < len(word) || string(rest[:len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// enter consumes the bracket in front of a list or an object.
func (s *scanner) enter(bracket byte, field string) {
	if s.peek() != bracket {
		s.wrongType(field)
		return
	}
	s.at++
	s.first = true
}

// item reports whether one more item follows in the list or object that ends with the bracket.
func (s *scanner) item(bracket byte) bool {
	c, first := s.peek(), s.first
	s.first = false
	switch {
	case c == bracket:
		s.at++
		return false
	case !first:
		s.take(',')
	}
	return s.err == nil
}

// field moves to the value of the next field of an object, and reports whether there is one. A null is passed over: it
// means the same as an absent field.
func (s *scanner) field() bool {
	for s.item('}') {
		s.name = s.text("")
		s.take(':')
		if s.peek() != 'n' || !s.literal("null") {
			return s.err == nil
		}
	}
	return false
}

// appendItem appends an item of the list that begins at front. A very long list that outgrows its room gets room for what
// would follow if its items stayed as long as those so far, so that a line takes no more memory than half a GiB.
func appendItem[T any](s *scanner, front int, list []T, item T) []T {
	if n := len(list); n == cap(list) && n >= 1<<16 {
		list = slices.Grow(list, (len(s.line)-s.at)*n/(s.at-front)+n/16)
	}
	return append(list, item)
}

// decode leaves a value to encoding/json.
func (s *scanner) decode(field string, v any) {
	decoder := json.NewDecoder(bytes.NewReader(s.line[s.at:]))
	if decoder.Decode(v) != nil {
		s.wrongType(field)
		return
	}
	s.at += int(decoder.InputOffset())
}

// unread is any JSON, of which nothing is kept.
type unread struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*unread) UnmarshalJSON([]byte) error { return nil }

// raw consumes a value of any type and returns it as it is written.
func (s *scanner) raw() []byte {
	first, front := s.peek(), s.at
	if first == '"' {
		s.text("")
	} else {
		s.decode("", new(unread))
	}
	return s.line[front:s.at]
}

// text consumes a string. The bytes are those of the line, unless the string has an escape.
func (s *scanner) text(field string) []byte {
	if s.peek() != '"' {
		s.wrongType(field)
		return nil
	}
	rest := s.line[s.at+1:]
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		s.fail(errSyntax)
		return nil
	}
	for _, c := range rest[:n] {
		if c < ' ' || c == '\\' {
			var text string
			s.decode(field, &text)
			return []byte(text)
		}
	}
	s.at += n + 2
	return rest[:n]
}

// uint consumes a whole number of at most so many bits.
func (s *scanner) uint(field string, bits int) uint64 {
	s.peek()
	rest := s.line[s.at:]
	n := 0
	for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(rest[:n]), 10, bits)
	if err != nil || n > 1 && rest[0] == '0' || n < len(rest) && (rest[n] == '.' || rest[n]|0x20 == 'e') {
		s.wrongType(field)
		return 0
	}
	s.at += n
	return v
}

func (s *scanner) bool(field string) bool {
	v := s.literal("true")
	if !v && !s.literal("false") {
		s.wrongType(field)
	}
	return v
}

// key consumes a public key.
func (s *scanner) key(field string) ledger.Pubkey {
	k, err := nodejson.ParseKey(field, s.text(field))
	if err != nil {
		s.fail(err)
	}
	return k
}
