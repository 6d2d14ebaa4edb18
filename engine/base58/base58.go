// Package base58 encodes and decodes bytes in base58 with the Bitcoin alphabet: the bytes are one
// big-endian number, and each leading zero byte is one leading '1'. Keys and signatures, of 32 and
// 64 bytes, have functions of their own, which are fast and allocate nothing; of other lengths there are few.
package base58

import (
	"errors"
	"fmt"

	"github.com/mr-tron/base58"
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
func Append(dst, b []byte) []byte { return append(dst, base58.Encode(b)...) }

// Decode returns the bytes that s of at most 2,048 characters stands for. Errors match Err.
func Decode(s string) ([]byte, error) {
	switch {
	case len(s) > maxChars:
		return nil, errLength
	case s == "":
		return nil, nil
	}
	b, err := base58.Decode(s)
	if err != nil {
		return nil, errCharacter
	}
	return b, nil
}
