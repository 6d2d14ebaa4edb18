package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger"
)

var (
	errEmpty           = errors.New("it is empty")
	errUnknownForm     = errors.New("its content is none of the recorded forms")
	errValidatorStream = errors.New("it is a recorded validator stream, which this build does not read")
)

// form is what a file holds.
type form uint8

const (
	unknownForm     form = iota
	jsonValues           // blocks and accounts as a node answers them
	eventLines           // our own NDJSON
	eventFile            // our own binary event file
	validatorStream      // length-framed geyser.SubscribeUpdate messages
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
}

// openContent opens an input and unpacks it if its first bytes say that it is packed.
// Reading from it ends with an error once ctx ends.
func openContent(ctx context.Context, in input, stdin io.Reader) (*content, error) {
	c := &content{}
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
	var unpacked io.Reader
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		z, err := gzip.NewReader(packed)
		if err != nil {
			c.Close()
			return nil, unpackError{"gzip", err}
		}
		c.closers = append(c.closers, func() { z.Close() })
		unpacked = unpacker{"gzip", z}
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindowBytes))
		if err != nil {
			c.Close()
			return nil, unpackError{"zstd", err}
		}
		c.closers = append(c.closers, z.Close)
		unpacked = unpacker{"zstd", z}
	default:
		return c, nil
	}
	c.r = bufio.NewReaderSize(unpacked, readAheadBytes)
	return c, nil
}

// openRaw opens the bytes of an input as they are.
func (c *content) openRaw(ctx context.Context, in input, stdin io.Reader) (io.Reader, error) {
	if in.stream {
		ctx, stop := context.WithCancel(ctx)
		c.closers = append(c.closers, stop)
		return newPump(ctx, func() (io.ReadCloser, error) {
			if in.path == "-" {
				return io.NopCloser(stdin), nil
			}
			return os.Open(in.path)
		}), nil
	}
	f, err := os.Open(in.path)
	if err != nil {
		return nil, reason(err)
	}
	c.closers = append(c.closers, func() { f.Close() })
	return contextReader{ctx, f}, nil
}

// Close gives back what the content holds. What it could report, reading has reported.
func (c *content) Close() {
	for i := len(c.closers) - 1; i >= 0; i-- {
		c.closers[i]()
	}
}

// form tells what the content is from its first bytes. It drops white space in front and
// else consumes nothing. Content without a byte is errEmpty: a zstd file that was cut
// between frames unpacks to nothing, without any error.
func (c *content) form() (form, error) {
	const headBytes = len(ledger.EventFileMagic)
	head, err := c.r.Peek(headBytes)
	if err != nil && err != io.EOF {
		return unknownForm, err
	}
	switch {
	case len(head) == 0:
		return unknownForm, errEmpty
	case bytes.HasPrefix(head, []byte(ledger.EventFileMagic)):
		return eventFile, nil
	case looksLikeValidatorStream(head):
		return validatorStream, nil
	}
	first, err := c.skipSpace()
	switch {
	case err == io.EOF:
		return unknownForm, errEmpty
	case err != nil:
		return unknownForm, err
	case first == '[':
		return jsonValues, nil
	case first == '{':
		return c.objectForm()
	}
	return unknownForm, nil
}

// objectForm tells event lines from other JSON. Only event lines have a "type", and nearly
// always in front; else the first line has to be read, which is put back after it.
func (c *content) objectForm() (form, error) {
	head, err := c.r.Peek(len(`{ "type"`))
	if err != nil && err != io.EOF {
		return unknownForm, err
	}
	if inner := bytes.TrimSpace(head[1:]); bytes.HasPrefix(inner, []byte(`"type"`)) {
		return eventLines, nil
	}
	line, err := readLine(c.r, nil, maxLineBytes)
	if err != nil && err != io.EOF && err != errLineTooLong {
		return unknownForm, err
	}
	c.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(line), c.r), readAheadBytes)
	var probe struct {
		Type json.RawMessage `json:"type"`
	}
	if err == errLineTooLong || json.Unmarshal(line, &probe) != nil || probe.Type == nil {
		return jsonValues, nil
	}
	return eventLines, nil
}

// looksLikeValidatorStream reports whether head starts with a 4-byte big-endian length and
// the tag of a length-delimited protobuf field, all of which SubscribeUpdate has.
func looksLikeValidatorStream(head []byte) bool {
	const maxMessageBytes, maxField, lengthDelimited = 64 << 20, 15, 2
	if len(head) < 5 {
		return false
	}
	length, tag := binary.BigEndian.Uint32(head), head[4]
	return length > 0 && length <= maxMessageBytes && tag&7 == lengthDelimited && tag>>3 >= 1 && tag>>3 <= maxField
}

// skipSpace drops JSON white space and returns the byte after it, without consuming it.
func (c *content) skipSpace() (byte, error) {
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case '\n':
			c.skippedLines++
		case ' ', '\t', '\r':
		default:
			return b, c.r.UnreadByte()
		}
	}
}

// unpacker names the packing in the errors of its reader, which else could be taken for
// those of what is inside.
type unpacker struct {
	packing string
	r       io.Reader
}

func (u unpacker) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF {
		err = unpackError{u.packing, err}
	}
	return n, err
}

// unpackError says that packed bytes are damaged or cut.
type unpackError struct {
	packing string
	err     error
}

func (e unpackError) Error() string {
	if errors.Is(e.err, io.ErrUnexpectedEOF) {
		return "its " + e.packing + " packing ends too early"
	}
	return "its " + e.packing + " packing is damaged: " + e.err.Error()
}

func (e unpackError) Unwrap() error { return e.err }
