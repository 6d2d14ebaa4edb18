package codec

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"ledgerd/engine/ledger"
)

// An event file is what EventWriter writes and a file source reads: a header, then frames to
// the end.
//
//	header    magic 8 | format version u32, little endian
//	frame     length n: number | CRC32C of the event u32, little endian | event n
const (
	// EventFileMagic are the first 8 bytes of every event file.
	EventFileMagic = "ledgerEV"

	eventFileHeaderBytes = len(EventFileMagic) + 4

	// MaxEventBytes bounds an encoded event. A mainnet block is far smaller.
	MaxEventBytes = 64 << 20

	// maxFrameHeadBytes bounds length and checksum of a frame.
	maxFrameHeadBytes = binary.MaxVarintLen32 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EventFileError says where an event file cannot be read or written. It
// matches ErrCorrupt for damage and io.ErrUnexpectedEOF where the file was cut short.
type EventFileError struct {
	Offset int64 // where the frame or header begins, in bytes
	Err    error
}

// Error names the place.
func (e *EventFileError) Error() string {
	return fmt.Sprintf("event file at byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *EventFileError) Unwrap() error { return e.Err }

// EventWriter writes an event file. It is not safe for concurrent use.
type EventWriter struct {
	w      io.Writer
	buf    []byte
	offset int64
}

// NewEventWriter writes the header to w and returns a writer of events after it. Each
// event is one call of w.Write. The caller buffers and closes w.
func NewEventWriter(w io.Writer) (*EventWriter, error) {
	header := binary.LittleEndian.AppendUint32([]byte(EventFileMagic), formatVersion)
	ew := &EventWriter{w: w}
	if err := ew.write(header); err != nil {
		return nil, err
	}
	return ew, nil
}

// Write appends one event. After an error the file may end in a torn frame and the writer must not
// be used, unless the event was over MaxEventBytes: then nothing was written.
func (w *EventWriter) Write(e ledger.Event) error {
	var space [maxFrameHeadBytes]byte
	w.buf = AppendEvent(append(w.buf[:0], space[:]...), e)
	event := w.buf[maxFrameHeadBytes:]
	if len(event) > MaxEventBytes {
		return &EventFileError{w.offset, fmt.Errorf("event of %d bytes is over the bound of %d", len(event), MaxEventBytes)}
	}
	// Length and checksum go right before the event.
	head := appendNumber(space[:0], len(event))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(event, castagnoli))
	start := maxFrameHeadBytes - len(head)
	copy(w.buf[start:], head)
	return w.write(w.buf[start:])
}

func (w *EventWriter) write(b []byte) error {
	n, err := w.w.Write(b)
	if err != nil {
		return &EventFileError{w.offset, err}
	}
	w.offset += int64(n)
	return nil
}

// EventReader reads an event file. It is not safe for concurrent use.
type EventReader struct {
	r      *bufio.Reader
	buf    bytes.Buffer
	offset int64 // of the next frame
}

// NewEventReader reads the header of an event file from r. It returns an *EventFileError
// if r does not begin with one of this format version. The reader reads ahead.
func NewEventReader(r io.Reader) (*EventReader, error) {
	er := &EventReader{r: bufio.NewReaderSize(r, 64<<10)}
	var header [eventFileHeaderBytes]byte
	if _, err := io.ReadFull(er.r, header[:]); err != nil {
		return nil, er.fail(torn(err))
	}
	if string(header[:len(EventFileMagic)]) != EventFileMagic {
		return nil, er.fail(fmt.Errorf("%w: not an event file", ledger.ErrCorrupt))
	}
	if v := binary.LittleEndian.Uint32(header[len(EventFileMagic):]); v != formatVersion {
		return nil, er.fail(fmt.Errorf("%w: format version %d, only %d is known", ledger.ErrCorrupt, v, formatVersion))
	}
	er.offset = int64(len(header))
	return er, nil
}

// Read returns the next event, io.EOF at a clean end, or an *EventFileError. After an
// error the reader must not be used.
func (r *EventReader) Read() (ledger.Event, error) {
	length, lengthBytes, err := r.length()
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.fail(err)
	}
	var sum [crc32.Size]byte
	if _, err := io.ReadFull(r.r, sum[:]); err != nil {
		return nil, r.fail(torn(err))
	}
	r.buf.Reset() // it grows as bytes come: a damaged length takes no memory
	if _, err := io.CopyN(&r.buf, r.r, int64(length)); err != nil {
		return nil, r.fail(torn(err))
	}
	if crc32.Checksum(r.buf.Bytes(), castagnoli) != binary.LittleEndian.Uint32(sum[:]) {
		return nil, r.fail(fmt.Errorf("%w: checksum differs", ledger.ErrCorrupt))
	}
	e, err := DecodeEvent(r.buf.Bytes())
	if err != nil {
		return nil, r.fail(err)
	}
	r.offset += int64(lengthBytes + len(sum) + length)
	return e, nil
}

// Offset returns where the next frame begins, in bytes.
func (r *EventReader) Offset() int64 { return r.offset }

// length reads the length of a frame and how many bytes it took. It returns io.EOF only
// where no frame begins.
func (r *EventReader) length() (length, size int, err error) {
	var v uint64
	for shift := 0; shift < 7*binary.MaxVarintLen32; shift += 7 {
		b, err := r.r.ReadByte()
		if err != nil {
			if size > 0 {
				err = torn(err)
			}
			return 0, 0, err
		}
		size++
		v |= uint64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if v == 0 || v > MaxEventBytes || (b == 0 && size > 1) {
			break
		}
		return int(v), size, nil
	}
	return 0, 0, fmt.Errorf("%w: bad length of frame", ledger.ErrCorrupt)
}

func (r *EventReader) fail(err error) error { return &EventFileError{r.offset, err} }

// torn turns an end of the input inside a frame or header into io.ErrUnexpectedEOF.
func torn(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
