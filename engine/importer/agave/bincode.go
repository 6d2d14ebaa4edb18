package agave

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ledgerd/engine/ledger"
)

// bincode reads bincode with integers of fixed width, little endian, from a file of known size.
// After the first error it returns zeros; err tells.
type bincode struct {
	r    *bufio.Reader
	at   uint64
	size uint64
	err  error
	room [32]byte
}

func (b *bincode) left() uint64 { return b.size - b.at }

// more reports whether anything follows.
func (b *bincode) more() bool { return b.err == nil && b.left() > 0 }

func (b *bincode) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// take returns the next n bytes, at most 32, good until the next call.
func (b *bincode) take(n int) []byte {
	p := b.room[:n]
	if b.err == nil && uint64(n) > b.left() {
		b.fail(errShort)
	}
	if b.err == nil {
		if _, err := io.ReadFull(b.r, p); err != nil {
			b.fail(cut(err))
		}
	}
	if b.err != nil {
		clear(p)
	}
	b.at += uint64(n)
	return p
}

var errShort = errors.New("it ends inside a field")

// cut says that the archive ends inside a file.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

var errCut = errors.New("the archive ends too early")

func (b *bincode) u64() uint64       { return binary.LittleEndian.Uint64(b.take(8)) }
func (b *bincode) slot() ledger.Slot { return ledger.Slot(b.u64()) }

func (b *bincode) hash() ledger.Hash { return ledger.Hash(b.take(32)) }

// flag reads a boolean, or whether an optional value follows.
func (b *bincode) flag() bool {
	v := b.take(1)[0]
	if v > 1 {
		b.fail(fmt.Errorf("byte %d is %d where only 0 or 1 may stand", b.at-1, v))
	}
	return v == 1
}

// skip passes over n bytes.
func (b *bincode) skip(n uint64) {
	if b.err == nil && n > b.left() {
		b.fail(errShort)
	}
	if b.err != nil {
		return
	}
	if _, err := b.r.Discard(int(n)); err != nil {
		b.fail(cut(err))
	}
	b.at += n
}

// count reads how many items follow, each of at least so many bytes: more than the file has room
// for are refused before anything is made of them.
func (b *bincode) count(itemBytes uint64) uint64 {
	n := b.u64()
	if b.err == nil && n > b.left()/itemBytes {
		b.fail(fmt.Errorf("at byte %d it counts %d items of %d bytes, and %d bytes are left", b.at-8, n, itemBytes, b.left()))
	}
	if b.err != nil {
		return 0
	}
	return n
}

// skipItems passes over a list of items of one size.
func (b *bincode) skipItems(itemBytes uint64) { b.skip(b.count(itemBytes) * itemBytes) }
