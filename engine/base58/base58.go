// Package base58 encodes and decodes bytes in base58 with the Bitcoin alphabet: the bytes are one
// big-endian number, and each leading zero byte is one leading '1'. Keys and signatures, of 32 and
// 64 bytes, have functions of their own, which are fast and allocate nothing.
package base58

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// The numbers of characters that 32 and 64 bytes take at least and at most.
const (
	min32, Max32 = 32, 44
	min64, Max64 = 64, 88
)

// maxChars bounds what Decode takes, because its time is quadratic. A transaction of 1,232 bytes
// takes 1,683 characters.
const maxChars = 2048

var (
	// Err says that a text is not base58, or not of the number of bytes. Every error of this
	// package matches it, and none repeats the text.
	Err = errors.New("not valid base58")

	errLength    = fmt.Errorf("%w: wrong length", Err)
	errCharacter = fmt.Errorf("%w: invalid character", Err)
	errRange     = fmt.Errorf("%w: wrong number of bytes", Err)
)

// Append appends the base58 of b, in a time that is quadratic in its length.
func Append(dst, b []byte) []byte {
	begin := len(dst)
	base, digit, number := big.NewInt(int64(len(alphabet))), new(big.Int), new(big.Int).SetBytes(b)
	for number.Sign() > 0 {
		number.DivMod(number, base, digit)
		dst = append(dst, alphabet[digit.Int64()])
	}
	for range len(b) - len(bytes.TrimLeft(b, "\x00")) {
		dst = append(dst, alphabet[0])
	}
	slices.Reverse(dst[begin:])
	return dst
}

// Decode returns the bytes that s of at most 2,048 characters stands for. Errors match Err.
func Decode(s string) ([]byte, error) {
	if len(s) > maxChars {
		return nil, errLength
	}
	var number big.Int
	base := big.NewInt(int64(len(alphabet)))
	for _, c := range []byte(s) {
		digit := digitValues[c]
		if digit == notDigit {
			return nil, errCharacter
		}
		number.Mul(&number, base).Add(&number, big.NewInt(int64(digit)))
	}
	return append(make([]byte, leading(s, alphabet[0])), number.Bytes()...), nil
}
