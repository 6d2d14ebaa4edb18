package file

import (
	"bytes"
	"math"
)

// scanner reads JSON that is written plainly, without reflection and without a copy. It knows
// less than JSON allows, and takes nothing that JSON does not allow. The first thing it
// does not take makes it fail: then it is at the end and every answer is zero, so that only
// the last step has to look.
type scanner struct {
	text   []byte
	at     int
	failed bool
}

func (s *scanner) fail() {
	s.failed, s.at = true, len(s.text)
}

// peek drops white space and returns the byte after it, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c > ' ' || (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
			return c
		}
	}
	return 0
}

// take consumes the byte c, or fails.
func (s *scanner) take(c byte) {
	if s.peek() != c {
		s.fail()
		return
	}
	s.at++
}

// open consumes the bracket in front of a list or an object, and the one behind it if there
// is nothing between. It reports whether an item follows.
func (s *scanner) open(front, behind byte) bool {
	s.take(front)
	if s.peek() == behind {
		s.at++
		return false
	}
	return !s.failed
}

// more consumes what stands behind an item, and reports whether another one follows.
func (s *scanner) more(behind byte) bool {
	switch s.peek() {
	case ',':
		s.at++
		return true
	case behind:
		s.at++
		return false
	}
	s.fail()
	return false
}

// name consumes the name of a field. It is as raw says, and only good for being compared.
func (s *scanner) name() []byte {
	name := s.raw()
	s.take(':')
	return name
}

// value reports whether a value follows: not where it is null, which is consumed and means
// the same as an absent field. It fails if the field is set already, as then JSON takes the
// last value, or a mixture of both.
func (s *scanner) value(isSet bool) bool {
	if s.peek() == 'n' && !isSet && s.literal("null") {
		return false
	}
	if isSet {
		s.fail()
	}
	return !isSet
}

// raw consumes a string and returns it as it is written. It may hold what JSON does not allow
// or what stands for something else: whoever takes it must refuse backslashes and control
// characters. Keys in base58, data in base64 and words out of a list do so by themselves.
func (s *scanner) raw() []byte {
	if s.peek() != '"' {
		s.fail()
		return nil
	}
	rest := s.text[s.at+1:]
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		s.fail()
		return nil
	}
	s.at += n + 2
	return rest[:n]
}

// quoted consumes a string as raw does, and returns it with its quotes.
func (s *scanner) quoted() []byte {
	text := s.raw()
	if s.failed {
		return nil
	}
	return s.text[s.at-len(text)-2 : s.at]
}

// plain consumes a string that is written as what it stands for.
func (s *scanner) plain() []byte {
	raw := s.raw()
	for _, c := range raw {
		if c < ' ' || c == '\\' {
			s.fail()
			return nil
		}
	}
	return raw
}

// uint consumes a whole number from 0 to max.
func (s *scanner) uint(max uint64) uint64 {
	s.peek()
	return s.digits(max)
}

// int consumes a whole number of 64 bits that may be negative.
func (s *scanner) int() int64 {
	if s.peek() == '-' {
		s.at++
		return -int64(s.digits(math.MaxInt64))
	}
	return int64(s.digits(math.MaxInt64))
}

// digits consumes the digits of a whole number from 0 to max.
func (s *scanner) digits(max uint64) uint64 {
	front := s.at
	var n uint64
	for s.at < len(s.text) {
		digit := uint64(s.text[s.at] - '0')
		if digit > 9 {
			break
		}
		if n > (math.MaxUint64-digit)/10 {
			s.fail()
			return 0
		}
		n = n*10 + digit
		s.at++
	}
	digits := s.text[front:s.at]
	if len(digits) == 0 || (digits[0] == '0' && len(digits) > 1) || n > max {
		s.fail()
		return 0
	}
	return n
}

// bool consumes true or false.
func (s *scanner) bool() bool {
	if s.literal("true") {
		return true
	}
	if !s.literal("false") {
		s.fail()
	}
	return false
}

// literal consumes the word if it is what follows.
func (s *scanner) literal(word string) bool {
	s.peek()
	rest := s.text[s.at:]
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// The functions below read the value of a field that may be null. They make the field lead to
// the place for its value, so that nothing is allocated.

func (s *scanner) uintField(field **uint64, place *uint64) {
	if s.value(*field != nil) {
		*place = s.uint(math.MaxUint64)
		*field = place
	}
}

func (s *scanner) intField(field **int64, place *int64) {
	if s.value(*field != nil) {
		*place = s.int()
		*field = place
	}
}

func (s *scanner) boolField(field **bool, place *bool) {
	if s.value(*field != nil) {
		*place = s.bool()
		*field = place
	}
}

// textField reads a string as raw does.
func (s *scanner) textField(field **[]byte, place *[]byte) {
	if s.value(*field != nil) {
		*place = s.raw()
		*field = place
	}
}

func (s *scanner) plainField(field **[]byte, place *[]byte) {
	if s.value(*field != nil) {
		*place = s.plain()
		*field = place
	}
}
