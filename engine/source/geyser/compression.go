package geyser

import (
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // makes gzip known to grpc
)

// zstdName is what gRPC calls it; grpc-go does not bring it.
const zstdName = "zstd"

// zstdWindowBytes bounds what a decoder holds. Encoders take 8 MiB at most, unless they are told to
// take more.
const zstdWindowBytes = 8 << 20

// noCompression is a name that no server knows: a call that accepts nothing tells the server
// all compressors that are registered, so one that wants none accepts this one alone.
const noCompression = "none"

func init() {
	encoding.RegisterCompressor(&zstdCompressor{})
	encoding.RegisterCompressor(unknown{})
}

// unknown stands for no compression.
type unknown struct{}

var errUnknown = errors.New("there is no such compression")

func (unknown) Name() string                               { return noCompression }
func (unknown) Compress(io.Writer) (io.WriteCloser, error) { return nil, errUnknown }
func (unknown) Decompress(io.Reader) (io.Reader, error)    { return nil, errUnknown }

// zstdCompressor packs and unpacks messages, each by itself. grpc reads no more of an unpacked message
// than the bound on messages.
type zstdCompressor struct {
	decoders sync.Pool // of *zstdReader
}

func (*zstdCompressor) Name() string { return zstdName }

func (*zstdCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
}

func (c *zstdCompressor) Decompress(r io.Reader) (io.Reader, error) {
	if d, ok := c.decoders.Get().(*zstdReader); ok {
		if err := d.Reset(r); err != nil {
			return nil, err
		}
		return d, nil
	}
	// One at a time: a decoder in its caller's goroutine starts none of its own.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindowBytes))
	if err != nil {
		return nil, err
	}
	return &zstdReader{Decoder: d, home: c}, nil
}

// zstdReader is a decoder that goes back where it came from.
type zstdReader struct {
	*zstd.Decoder
	home *zstdCompressor
}

// Close gives the decoder back; grpc calls it once.
func (r *zstdReader) Close() error {
	if err := r.Reset(nil); err != nil {
		return err
	}
	r.home.decoders.Put(r)
	return nil
}
