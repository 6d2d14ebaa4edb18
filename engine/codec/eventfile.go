package codec

import (
	"bufio"
	"bytes"
	"encoding/binary"
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

	// peekedBytes are read to find out the length and checksum of a frame. The shortest frame is longer.
	peekedBytes = binary.MaxVarintLen32 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EventWriter writes an event file. It is not safe for concurrent use.
type EventWriter struct {
	w            io.Writer
	event, frame []byte
}

// NewEventWriter writes the header to w and returns a writer of events after it. Each
// event is one call of w.Write. The caller buffers and closes w.
func NewEventWriter(w io.Writer) (*EventWriter, error) {
	ew := &EventWriter{w: w, frame: binary.LittleEndian.AppendUint32([]byte(EventFileMagic), formatVersion)}
	return ew, ew.write()
}

// Write appends one event. After an error the file may end in a torn frame and the writer must not
// be used, unless the event was over MaxEventBytes: then nothing was written.
func (w *EventWriter) Write(e ledger.Event) error {
	w.event = AppendEvent(w.event[:0], e)
	if len(w.event) > MaxEventBytes {
		return fmt.Errorf("event of %d bytes is over the bound of %d", len(w.event), MaxEventBytes)
	}
	w.frame = appendNumber(w.frame[:0], len(w.event))
	w.frame = binary.LittleEndian.AppendUint32(w.frame, crc32.Checksum(w.event, castagnoli))
	w.frame = append(w.frame, w.event...)
	return w.write()
}

func (w *EventWriter) write() error {
	if _, err := w.w.Write(w.frame); err != nil {
		return fmt.Errorf("cannot write event file: %w", err)
	}
	return nil
}

// EventReader reads an event file. It is not safe for concurrent use.
type EventReader struct {
	r      *bufio.Reader
	buf    bytes.Buffer
	offset int64 // of the next frame
}

// NewEventReader reads the header of an event file from r. Errors are those of Read. The reader reads ahead.
func NewEventReader(r io.Reader) (*EventReader, error) {
	er := &EventReader{r: bufio.NewReaderSize(r, 64<<10)}
	var header [eventFileHeaderBytes]byte
	if _, err := io.ReadFull(er.r, header[:]); err != nil {
		return nil, er.fail(err)
	}
	if string(header[:len(EventFileMagic)]) != EventFileMagic {
		return nil, er.corrupt("not an event file")
	}
	if v := binary.LittleEndian.Uint32(header[len(EventFileMagic):]); v != formatVersion {
		return nil, er.corrupt(fmt.Sprintf("format version %d, only %d is known", v, formatVersion))
	}
	er.offset = int64(len(header))
	return er, nil
}

// Read returns the next event, or io.EOF at a clean end. Other errors name the byte where the frame or header begins. They
// match ErrCorrupt for damage and io.ErrUnexpectedEOF where the file was cut short. After an error the reader must not
// be used.
func (r *EventReader) Read() (ledger.Event, error) {
	head, err := r.r.Peek(peekedBytes)
	if len(head) == 0 && err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.fail(err)
	}
	length, lengthBytes := binary.Uvarint(head)
	if lengthBytes <= 0 || length == 0 || length > MaxEventBytes || lengthBytes > 1 && head[lengthBytes-1] == 0 {
		return nil, r.corrupt("bad length of frame")
	}
	sum := binary.LittleEndian.Uint32(head[lengthBytes:])
	r.buf.Reset() // it grows as bytes come: a damaged length takes no memory
	if _, err := io.CopyN(&r.buf, r.r, int64(lengthBytes)+crc32.Size+int64(length)); err != nil {
		return nil, r.fail(err)
	}
	event := r.buf.Bytes()[lengthBytes+crc32.Size:]
	if crc32.Checksum(event, castagnoli) != sum {
		return nil, r.corrupt("checksum differs")
	}
	e, err := DecodeEvent(event)
	if err != nil {
		return nil, r.fail(err)
	}
	r.offset += int64(r.buf.Len())
	return e, nil
}

// fail returns an error with its place. An end of the input inside a frame or header is io.ErrUnexpectedEOF.
func (r *EventReader) fail(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("event file at byte %d: %w", r.offset, err)
}

func (r *EventReader) corrupt(what string) error {
	return r.fail(fmt.Errorf("%w: %s", ledger.ErrCorrupt, what))
}
