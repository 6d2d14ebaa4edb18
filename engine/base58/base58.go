// Package base58 writes and reads 32 and 64 bytes in base58 with the Bitcoin alphabet: the bytes
// are one big-endian number, and each leading zero byte is one leading '1'. It allocates nothing.
package base58

import (
	"errors"
	"fmt"
)

// How many characters 32 and 64 bytes take at most. They take at least as many as there are bytes.
const (
	min32, Max32 = 32, 44
	min64, Max64 = 64, 88
)

var (
	// Err says that a text is not the base58 of so many bytes. Every error of Decode32 and
	// Decode64 matches it, and none repeats the text.
	Err = errors.New("not valid base58")

	errLength    = fmt.Errorf("%w: wrong length", Err)
	errCharacter = fmt.Errorf("%w: invalid character", Err)
	errRange     = fmt.Errorf("%w: wrong number of bytes", Err)
)
