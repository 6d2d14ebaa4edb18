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
)

// readBody returns a whole answer of at most so many bytes. A large one is read and decoded while no other is, which the caller ends by
// leave.
func (c *client) readBody(ctx context.Context, from io.Reader, maxBytes int) (text []byte, leave func(), err error) {
	var all bytes.Buffer
	leave = func() {}
	_, err = all.ReadFrom(io.LimitReader(from, smallBytes))
	if err == nil && all.Len()+elementBytes*elements(all.Bytes()) >= smallBytes {
		select {
		case c.large <- struct{}{}:
			leave = func() { <-c.large }
		case <-ctx.Done():
			return nil, leave, ctx.Err()
		}
		all.Grow(maxBytes) // once: a buffer that doubles takes three times as much
		_, err = all.ReadFrom(io.LimitReader(from, int64(maxBytes)-smallBytes+1))
	}
	switch {
	case err != nil:
	case all.Len() > maxBytes:
		err = errTooLong
	case elements(all.Bytes()) > maxElements+max(maxBytes-defaultBlockBytes, 0)/extraBytes:
		err = errTooMany
	}
	return all.Bytes(), leave, err
}

// elements counts the commas and brackets of a text.
func elements(text []byte) (count int) {
	for _, mark := range []string{",", "[", "{"} {
		count += bytes.Count(text, []byte(mark))
	}
	return count
}
