package file

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/source/unpack"
)

const (
	// readAheadBytes is how much is read at once.
	readAheadBytes = 64 << 10
	// maxWindowBytes bounds what unpacking needs in memory. It is the window of zstd's
	// highest level with --long; an attacker's frame may ask for more and is refused.
	maxWindowBytes = 128 << 20
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// content is the unpacked content of one input.
type content struct {
	r            *bufio.Reader
	skippedLines int // dropped in front, as white space
	closers      []func()
	read         *atomic.Int64 // bytes of regular files, packed or not
}

// openContent opens an input and unpacks it if its first bytes say that it is packed.
// Reading from it ends with an error once ctx ends.
func openContent(ctx context.Context, in input, stdin io.Reader, read *atomic.Int64) (*content, error) {
	c := &content{read: read}
	raw, err := c.openRaw(ctx, in, stdin)
	if err != nil {
		return nil, err
	}
	packed := bufio.NewReaderSize(raw, readAheadBytes)
	c.r = packed
	head, err := packed.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		c.Close()
		return nil, err
	}
	packing := ""
	var unpacked io.ReadCloser
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		packing = "gzip"
		unpacked, err = gzip.NewReader(packed)
	case bytes.HasPrefix(head, zstdMagic):
		packing = "zstd"
		var z *zstd.Decoder
		z, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindowBytes))
		unpacked = z.IOReadCloser()
	default:
		return c, nil
	}
	if err != nil {
		c.Close()
		return nil, unpack.Error{Packing: packing, Err: err}
	}
	c.closers = append(c.closers, func() { unpacked.Close() })
	c.r = bufio.NewReaderSize(unpack.Reader{Packing: packing, R: unpacked}, readAheadBytes)
	return c, nil
}

// openRaw opens the bytes of an input as they are.
func (c *content) openRaw(ctx context.Context, in input, stdin io.Reader) (io.Reader, error) {
	if in.stream {
		ctx, stop := context.WithCancel(ctx)
		c.closers = append(c.closers, stop)
		return pump(ctx, func() (io.ReadCloser, error) {
			if in.path == "-" {
				return io.NopCloser(stdin), nil
			}
			return os.Open(in.path)
		}), nil
	}
	f, err := os.Open(in.path)
	if err != nil {
		return nil, unpack.Reason(err)
	}
	c.closers = append(c.closers, func() { f.Close() })
	return unpack.Counted{Ctx: ctx, R: f, Bytes: c.read}, nil
}

// Close gives back what the content holds. What it could report, reading has reported.
func (c *content) Close() {
	for i := len(c.closers) - 1; i >= 0; i-- {
		c.closers[i]()
	}
}
