package base58

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Both directions go by ten digits at a time, since 58^10 is the highest power of 58 in a word of 64 bits, and neither
// allocates.
//
// Text to bytes: the number read so far, in words of 64 bits, times 58^10, plus the next ten digits.
//
// Bytes to text: the number, in words of 64 bits, is divided by 58^10 again and again, and each remainder is ten digits, the
// last ones first. Words that have become zero are divided no more.
const (
	alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

	pow5  = 58 * 58 * 58 * 58 * 58
	pow10 = pow5 * pow5

	// notDigit is the value of a character outside the alphabet. It is above every number
	// of five digits, so that one comparison of a sum finds it.
	notDigit = 1 << 31
)

var (
	digitValues [256]uint32
	digitPairs  [58 * 58][2]byte                          // the two digits of each number
	zeroDigits  = [90]byte(bytes.Repeat([]byte{'1'}, 90)) // fill up a text to whole groups of ten digits
)

func init() {
	for c := range digitValues {
		digitValues[c] = notDigit
	}
	for v, c := range []byte(alphabet) {
		digitValues[c] = uint32(v)
	}
	for n := range digitPairs {
		digitPairs[n] = [2]byte{alphabet[n/58], alphabet[n%58]}
	}
}

// Append32 appends the base58 of 32 bytes, at most Max32 characters.
func Append32(dst []byte, b *[32]byte) []byte {
	var words [4]uint64
	var text [50]byte
	return encode(dst, text[:], words[:], b[:])
}

// Append64 appends the base58 of 64 bytes, at most Max64 characters.
func Append64(dst []byte, b *[64]byte) []byte {
	var words [8]uint64
	var text [90]byte
	return encode(dst, text[:], words[:], b[:])
}

// encode appends the text of b. words and text have room for all of b. The text has as many leading ones as b has zero bytes,
// and its groups of ten digits never fewer.
func encode(dst, text []byte, words []uint64, b []byte) []byte {
	for i := range words {
		words[i] = binary.BigEndian.Uint64(b[i*8:])
	}
	for end := len(text); end > 0; end -= 10 {
		var rest uint64
		for i := range words {
			words[i], rest = bits.Div64(rest, words[i], pow10)
		}
		for len(words) > 0 && words[0] == 0 {
			words = words[1:]
		}
		putDigits((*[5]byte)(text[end-10:]), uint32(rest/pow5))
		putDigits((*[5]byte)(text[end-5:]), uint32(rest%pow5))
	}
	return append(dst, text[leading(text, alphabet[0])-leading(b, 0):]...)
}

// putDigits writes a number as five characters.
func putDigits(text *[5]byte, number uint32) {
	upper := number / (58 * 58)
	first := upper / (58 * 58)
	text[0] = alphabet[first]
	*(*[2]byte)(text[1:]) = digitPairs[upper-first*(58*58)]
	*(*[2]byte)(text[3:]) = digitPairs[number-upper*(58*58)]
}

// Decode32 sets b to the 32 bytes that s stands for. After an error, which is an Err, b is
// unchanged or zero.
func Decode32[T string | []byte](b *[32]byte, s T) error {
	var acc [5]uint64
	return decode(b[:], acc[:], s, min32, Max32)
}

// Decode64 sets b to the 64 bytes that s stands for, as Decode32 does.
func Decode64[T string | []byte](b *[64]byte, s T) error {
	var acc [9]uint64
	return decode(b[:], acc[:], s, min64, Max64)
}

// decode sets b to the number that s stands for. acc has one word more than b.
func decode[T string | []byte](b []byte, acc []uint64, s T, shortest, longest int) error {
	if len(s) < shortest || len(s) > longest {
		return errLength
	}
	digits := zeroDigits
	text := digits[:10*len(acc)]
	copy(text[len(text)-len(s):], s)
	if readDigits(acc, text) >= notDigit {
		return errCharacter
	}
	over := len(acc) - 1
	for i, word := range acc[:over] {
		binary.BigEndian.PutUint64(b[len(b)-8-i*8:], word)
	}
	if acc[over] != 0 || leading(s, alphabet[0]) != leading(b, 0) {
		clear(b)
		return errRange
	}
	return nil
}

// readDigits sets acc to the number that text stands for, least significant word first. The text has ten digits for each
// word. It returns notDigit or more if a character is no digit.
func readDigits(acc []uint64, text []byte) (seen uint64) {
	for group := range acc {
		upper, lower := fiveDigits((*[5]byte)(text[:5])), fiveDigits((*[5]byte)(text[5:10]))
		text = text[10:]
		seen |= upper | lower
		carry := upper*pow5 + lower
		// The number so far takes no more words than there were groups.
		for i := range acc[:group] {
			high, low := bits.Mul64(acc[i], pow10)
			var c uint64
			acc[i], c = bits.Add64(low, carry, 0)
			carry = high + c
		}
		acc[group] = carry
	}
	return seen
}

// fiveDigits returns the number five characters stand for; notDigit or more if one of
// them is none.
func fiveDigits(c *[5]byte) uint64 {
	return uint64(digitValues[c[0]])*(58*58*58*58) + uint64(digitValues[c[1]])*(58*58*58) +
		uint64(digitValues[c[2]])*(58*58) + uint64(digitValues[c[3]])*58 + uint64(digitValues[c[4]])
}

// leading returns with how many bytes c a text begins.
func leading[T string | []byte](s T, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}
