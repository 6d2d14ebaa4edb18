package codec

import (
	"bufio"
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

	// MaxEventBytes bounds an encoded event. A mainnet block is far below it; it keeps a
	// damaged length from asking for all memory.
	MaxEventBytes = 64 << 20

	// frameRoomBytes is the room for length and checksum before an event.
	frameRoomBytes = binary.MaxVarintLen32 + crc32.Size

	// readStepBytes is how far memory runs ahead of what was really read.
	readStepBytes = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EventFileError is the place where an event file cannot be read or written on. It
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

// NewEventWriter writes the header to w and returns a writer of events behind it. Each
// event is one call of w.Write; buffering and closing are the caller's.
func NewEventWriter(w io.Writer) (*EventWriter, error) {
	header := binary.LittleEndian.AppendUint32([]byte(EventFileMagic), formatVersion)
	ew := &EventWriter{w: w}
	if err := ew.write(header); err != nil {
		return nil, err
	}
	return ew, nil
}

// Write appends one event. After an error the file ends in a torn frame and the writer is
// of no more use, unless the event was refused for its size: then nothing was written.
func (w *EventWriter) Write(e ledger.Event) error {
	var room [frameRoomBytes]byte
	w.buf = AppendEvent(append(w.buf[:0], room[:]...), e)
	event := w.buf[frameRoomBytes:]
	if len(event) > MaxEventBytes {
		return &EventFileError{w.offset, fmt.Errorf("event of %d bytes is over the bound of %d", len(event), MaxEventBytes)}
	}
	// Length and checksum go right before the event.
	head := appendNumber(room[:0], len(event))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(event, castagnoli))
	start := frameRoomBytes - len(head)
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
	buf    []byte
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
// error the reader is of no more use.
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
	if err := r.fill(length); err != nil {
		return nil, r.fail(torn(err))
	}
	if crc32.Checksum(r.buf, castagnoli) != binary.LittleEndian.Uint32(sum[:]) {
		return nil, r.fail(fmt.Errorf("%w: checksum differs", ledger.ErrCorrupt))
	}
	e, err := DecodeEvent(r.buf)
	if err != nil {
		return nil, r.fail(err)
	}
	r.offset += int64(lengthBytes + len(sum) + length)
	return e, nil
}

// Offset returns where the next frame begins, in bytes: what stands before it was read.
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

// fill reads length bytes into buf, taking memory only as they come.
func (r *EventReader) fill(length int) error {
	r.buf = r.buf[:0]
	for len(r.buf) < length {
		have := len(r.buf)
		step := min(length-have, max(readStepBytes, have))
		if cap(r.buf) < have+step {
			r.buf = append(make([]byte, 0, have+step), r.buf...)
		}
		r.buf = r.buf[:have+step]
		if _, err := io.ReadFull(r.r, r.buf[have:]); err != nil {
			return err
		}
	}
	return nil
}

func (r *EventReader) fail(err error) error { return &EventFileError{r.offset, err} }

// torn tells an end inside of something from an end.
func torn(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
