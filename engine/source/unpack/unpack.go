// Package unpack reads files, and says what is wrong with one in words that fit behind its name.
package unpack

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
)

// Counted reads until its context ends, and counts what it reads.
type Counted struct {
	Ctx   context.Context
	R     io.Reader
	Bytes *atomic.Int64
}

// Read implements io.Reader.
func (c Counted) Read(p []byte) (int, error) {
	if err := c.Ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.R.Read(p)
	c.Bytes.Add(int64(n))
	return n, err
}

// Reader reads what a decompressor unpacks. Its errors, of type Error, name the packing: else they could be taken
// for those of what is inside.
type Reader struct {
	Packing string
	R       io.Reader
}

// Read implements io.Reader.
func (r Reader) Read(p []byte) (int, error) {
	n, err := r.R.Read(p)
	if err != nil && err != io.EOF {
		err = Error{r.Packing, err}
	}
	return n, err
}

// Error says that packed bytes are damaged or cut.
type Error struct {
	Packing string
	Err     error
}

func (e Error) isCut() bool { return errors.Is(e.Err, io.ErrUnexpectedEOF) }

// Error says which of the two.
func (e Error) Error() string {
	if e.isCut() {
		return "its " + e.Packing + " packing ends too early"
	}
	return "its " + e.Packing + " packing is damaged: " + e.Err.Error()
}

// Unwrap returns what the decompressor said, but nil of packed bytes that are cut: what is inside may be whole.
func (e Error) Unwrap() error {
	if e.isCut() {
		return nil
	}
	return e.Err
}

// Reason returns what went wrong without the path, which the message already names.
func Reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
