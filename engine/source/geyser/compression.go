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
	encoding.RegisterCompressor(zstdCompressor{})
	encoding.RegisterCompressor(unknown{})
}

// unknown stands for no compression.
type unknown struct{}

func (unknown) Name() string                               { return noCompression }
func (unknown) Compress(io.Writer) (io.WriteCloser, error) { return nil, errors.ErrUnsupported }
func (unknown) Decompress(io.Reader) (io.Reader, error)    { return nil, errors.ErrUnsupported }

// zstdCompressor packs and unpacks messages, each by itself. grpc reads no more of an unpacked message
// than the bound on messages.
type zstdCompressor struct{}

func (zstdCompressor) Name() string { return zstdName }

func (zstdCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
}

func (zstdCompressor) Decompress(r io.Reader) (io.Reader, error) {
	d := zstdReaders.Get().(*zstdReader)
	return d, d.Reset(r)
}

// zstdReaders holds decoders to use again. With a concurrency of one a decoder works in its caller's goroutine and starts
// none of its own.
var zstdReaders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindowBytes))
	if err != nil {
		panic(err) // an option is out of its range
	}
	return &zstdReader{d}
}}

// zstdReader is a decoder that goes back to the pool.
type zstdReader struct{ *zstd.Decoder }

// Close gives the decoder back; grpc calls it once.
func (r *zstdReader) Close() error {
	err := r.Reset(nil)
	zstdReaders.Put(r)
	return err
}
