package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// maxElements bounds the commas and brackets in an answer, because `,{}` takes up to a hundred bytes of memory. A
	// block of mainnet has an eighth of it: one in 28 bytes.
	maxElements = 1 << 20
	// elementBytes is what each of them adds to the bytes of an answer when it is told whether that is large.
	elementBytes = 32
	// smallBytes is the size of an answer that may be read and decoded while others are.
	smallBytes = 8 << 20
)

var (
	errTooLong = errors.New("it is too long")
	errTooMany = fmt.Errorf("it has more than %d elements", maxElements)
	errLarge   = errors.New("it is large")
)

// body counts what is read of an answer.
type body struct {
	source   io.Reader
	maxBytes int
	bytes    int
	elements int
	alone    bool // no other large answer is read
}

// Read returns errTooLong and errTooMany past the bounds, and errLarge where the answer must be alone to be read on.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	b.bytes += n
	for _, mark := range []string{",", "[", "{"} {
		b.elements += bytes.Count(p[:n], []byte(mark))
	}
	switch {
	case b.bytes > b.maxBytes:
		return n, errTooLong
	case b.elements > maxElements:
		return n, errTooMany
	case !b.alone && b.bytes+elementBytes*b.elements > smallBytes:
		return n, errLarge
	}
	return n, err
}
