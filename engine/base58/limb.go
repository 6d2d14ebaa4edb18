package base58

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Neither direction divides a long number, and neither allocates.
//
// Text to bytes goes by ten digits at a time: the number read so far, in words of 64 bits,
// times 58^10, plus the next ten digits.
//
// Bytes to text goes by limbs of five digits. A number of 256 bits is 8 words of 32 bits
// or 9 limbs of base 58^5, and each limb is a dot product: the words times what a unit of
// each is worth in that limb. Carries are settled once at the end. A number of 512 bits is
// its upper half, whose words reach into 18 limbs, then its lower half, with carries
// settled in between too, so that no sum reaches 2^64. Sums are greatest with all bits set, which the fuzz test begins with.
const (
	alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

	pow5  = 58 * 58 * 58 * 58 * 58
	pow10 = pow5 * pow5

	// notDigit is the value of a character outside the alphabet. It is above every number
	// of five digits, so that one comparison of a sum finds it.
	notDigit = 1 << 31
)

// words are the 32-bit words of 256 bits, most significant first, or what they are worth
// in one limb.
type words [8]uint64

var (
	digitValues            [256]uint32
	digitPairs             [58 * 58][2]byte                          // the two digits of each number
	zeroDigits             = [90]byte(bytes.Repeat([]byte{'1'}, 90)) // fill up a text to whole groups of ten digits
	lowerWorth, upperWorth = makeWorths()
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

// makeWorths returns, by limb, what the words of the lower and of the upper half of 512
// bits are worth. The lower half reaches into the last 9 limbs only.
func makeWorths() (lower [9]words, upper [18]words) {
	var unit [18]uint64 // 2^(32×place) in limbs
	unit[17] = 1
	for place := range 16 {
		for j, worth := range unit {
			if place >= 8 {
				upper[j][15-place] = worth
			} else if j >= 9 {
				lower[j-9][7-place] = worth
			}
		}
		for j := range unit {
			unit[j] <<= 32
		}
		settle(unit[:])
	}
	return lower, upper
}

// settle carries what exceeds a limb into the next one, leaving every limb but the first
// below 58^5, and the first too when the number fits.
func settle(limbs []uint64) {
	for j := len(limbs) - 1; j > 0; j-- {
		limbs[j-1] += limbs[j] / pow5
		limbs[j] %= pow5
	}
}

func loadWords(b []byte) (w words) {
	for i := range w {
		w[i] = uint64(binary.BigEndian.Uint32(b[i*4:]))
	}
	return w
}

// dot is written out because a loop costs as much as the products.
func (w *words) dot(o *words) uint64 {
	return w[0]*o[0] + w[1]*o[1] + w[2]*o[2] + w[3]*o[3] +
		w[4]*o[4] + w[5]*o[5] + w[6]*o[6] + w[7]*o[7]
}

// Append32 appends the base58 of 32 bytes, at most Max32 characters.
func Append32(dst []byte, b *[32]byte) []byte {
	var limbs [9]uint64
	addWords(limbs[:], b[:], lowerWorth[:])
	return appendLimbs(dst, limbs[:], b[:])
}

// Append64 appends the base58 of 64 bytes, at most Max64 characters.
func Append64(dst []byte, b *[64]byte) []byte {
	var limbs [18]uint64
	addWords(limbs[:], b[:32], upperWorth[:])
	addWords(limbs[9:], b[32:], lowerWorth[:])
	settle(limbs[:10])
	return appendLimbs(dst, limbs[:], b[:])
}

// addWords adds to limbs what 256 bits are worth in each, and settles them.
func addWords(limbs []uint64, b []byte, worth []words) {
	w := loadWords(b)
	for j := range limbs {
		limbs[j] += w.dot(&worth[j])
	}
	settle(limbs)
}

// appendLimbs appends settled limbs as the text of b. It has as many leading ones as b has zero bytes, and the limbs never
// fewer.
func appendLimbs(dst []byte, limbs []uint64, b []byte) []byte {
	var text [18 * 5]byte
	for j, limb := range limbs {
		putDigits((*[5]byte)(text[j*5:]), uint32(limb))
	}
	t := text[:len(limbs)*5]
	return append(dst, t[leading(t, alphabet[0])-leading(b, 0):]...)
}

// putDigits writes a limb as five characters.
func putDigits(text *[5]byte, limb uint32) {
	upper := limb / (58 * 58)
	first := upper / (58 * 58)
	text[0] = alphabet[first]
	*(*[2]byte)(text[1:]) = digitPairs[upper-first*(58*58)]
	*(*[2]byte)(text[3:]) = digitPairs[limb-upper*(58*58)]
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
