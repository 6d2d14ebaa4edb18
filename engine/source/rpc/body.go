package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
)

const (
	// defaultBlockBytes bounds the JSON of a block. One at the beginning of an epoch had more before rewards were partitioned.
	defaultBlockBytes = 64 << 20
	// maxElements bounds the commas and brackets in an answer, because `,{}` takes up to a hundred bytes of memory. A
	// block of mainnet has an eighth of it: one in 28 bytes. Where a person raised the bytes there is one more for each extraBytes.
	maxElements, extraBytes = 1 << 20, 16
	// elementBytes is what each of them adds to the bytes of an answer when it is told whether that is large.
	elementBytes = 32
	// smallBytes is the size of an answer that may be read and decoded while others are.
	smallBytes = 8 << 20
)

var (
	errTooLong = errors.New("it is too long")
	errTooMany = errors.New("it has too many elements")
	errLarge   = errors.New("it is large")
)

// body is an answer while it is read and decoded. Its elements are counted as they come.
type body struct {
	source   io.Reader
	maxBytes int
	large    chan struct{} // room for one answer that is large
	bytes    int
	elements int
	alone    bool // it has that room
}

// text returns the whole answer. A large one waits until no other is read or decoded, and must leave then.
func (b *body) text(ctx context.Context) ([]byte, error) {
	var text bytes.Buffer
	_, err := text.ReadFrom(b)
	if errors.Is(err, errLarge) {
		select {
		case b.large <- struct{}{}:
			b.alone = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		text.Grow(b.maxBytes + bytes.MinRead) // once: a buffer that doubles takes three times as much
		_, err = text.ReadFrom(b)
	}
	return text.Bytes(), err
}

// leave lets the next large answer be read.
func (b *body) leave() {
	if b.alone {
		<-b.large
	}
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
	case b.elements > maxElements+max(b.maxBytes-defaultBlockBytes, 0)/extraBytes:
		return n, errTooMany
	case !b.alone && b.bytes+elementBytes*b.elements > smallBytes:
		return n, errLarge
	}
	return n, err
}
