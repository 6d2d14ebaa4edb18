package codec

import (
	"encoding/binary"
	"fmt"

	"ledgerd/engine/ledger"
)

const (
	formatVersion       = 1
	formatWalletsBefore = 2 // records only
	formatByDepth       = 3 // likewise
	formatHorizon       = 4 // likewise
	formatErr           = 5 // likewise
	formatData          = 6 // likewise
	formatReadOnly      = 7 // likewise
	formatErrEvent      = 2 // events only
	formatDataEvent     = 3 // likewise
	formatReadOnlyEvent = 4 // likewise
)

// appendNumber appends a number.
func appendNumber[T ~uint64 | ~uint32 | ~int](dst []byte, v T) []byte {
	return binary.AppendUvarint(dst, uint64(v))
}

// appendOptKey appends a key if it is known, which the flags say.
func appendOptKey[K ~[32]byte](dst []byte, k *ledger.Opt[K]) []byte {
	if !k.Known {
		return dst
	}
	return append(dst, k.Value[:]...)
}

// appendList appends the count of items and the items, with their data if the format has data.
func appendList[T any](dst []byte, items []T, withData bool, appendItem func([]byte, *T, bool) []byte) []byte {
	dst = appendNumber(dst, len(items))
	for i := range items {
		dst = appendItem(dst, &items[i], withData)
	}
	return dst
}

// bit returns the flag if v is set.
func bit(v bool, flag byte) byte {
	if v {
		return flag
	}
	return 0
}

// decoder reads an encoding from front to back. It remembers the first failure; after it
// every read returns zero, so only finish needs to be checked, and loops that allocate.
type decoder struct {
	b   []byte
	off int
	err error

	tellsData  bool                 // writes and accounts tell their data
	sharedData int                  // bytes of data before updates that are as after them
	tokenFacts *ledger.TokenAccount // empty, for the token facts of the one account; nil: they are allocated
}

// fail remembers that what was read last is wrong, and ends the input.
func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s at byte %d of %d", ledger.ErrCorrupt, what, d.off, len(d.b))
	}
	d.off = len(d.b)
}

// finish returns the first failure, or one if input is left.
func (d *decoder) finish() error {
	if d.err == nil && d.off != len(d.b) {
		d.fail("trailing bytes")
	}
	return d.err
}

// left returns how many bytes are left.
func (d *decoder) left() int { return len(d.b) - d.off }

func (d *decoder) skip(n int) {
	if n > d.left() {
		d.fail("cut short")
		return
	}
	d.off += n
}

func (d *decoder) byte() byte {
	if d.off >= len(d.b) {
		d.fail("cut short")
		return 0
	}
	v := d.b[d.off]
	d.off++
	return v
}

// bytes fills dst.
func (d *decoder) bytes(dst []byte) {
	if len(dst) > d.left() {
		d.fail("cut short")
		return
	}
	d.off += copy(dst, d.b[d.off:])
}

// flags reads flags of which only the named bits may be set.
func (d *decoder) flags(named byte) byte {
	f := d.byte()
	if f&^named != 0 {
		d.off--
		d.fail("unknown flags")
		return 0
	}
	return f
}

// number reads a number.
func (d *decoder) number() uint64 {
	if d.off < len(d.b) && d.b[d.off] < 0x80 {
		d.off++
		return uint64(d.b[d.off-1])
	}
	return d.longNumber()
}

func (d *decoder) longNumber() uint64 {
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 || (n > 1 && d.b[d.off+n-1] == 0) {
		d.fail("bad number")
		return 0
	}
	d.off += n
	return v
}

// signed reads a signed number.
func (d *decoder) signed() int64 {
	v := d.number()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads how many items follow that take at least size bytes each. It fails where
// they cannot fit into what is left.
func (d *decoder) count(size int) int {
	n := d.number()
	if n > uint64(d.left()/size) {
		d.fail("count beyond the end")
		return 0
	}
	return int(n)
}

// text reads a text behind its length.
func (d *decoder) text() string {
	n := d.count(1)
	d.off += n
	return string(d.b[d.off-n : d.off])
}

// optKey reads a key if it is known, as the flags say.
func optKey[K ~[32]byte](d *decoder, isKnown bool) (k ledger.Opt[K]) {
	if isKnown {
		k.Known = true
		d.bytes(k.Value[:])
	}
	return k
}

// list reads a count and that many items, which take at least size bytes each. Without items it returns nil.
func list[T any](d *decoder, size int, read func(*decoder, *T)) []T {
	return items(d, d.count(size), read)
}

// items reads so many items.
func items[T any](d *decoder, n int, read func(*decoder, *T)) []T {
	if n == 0 {
		return nil
	}
	all := make([]T, n)
	for i := range all {
		if read(d, &all[i]); d.err != nil {
			return nil
		}
	}
	return all
}
