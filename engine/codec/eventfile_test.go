package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"reflect"
	"runtime"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
)

// writeEvents returns an event file and where its frames begin; the last is its end.
func writeEvents(t interface{ Fatal(...any) }, events []ledger.Event) (file []byte, starts []int) {
	var buf bytes.Buffer
	w, err := NewEventWriter(&buf)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		starts = append(starts, buf.Len())
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes(), append(starts, buf.Len())
}

// readEvents reads to the end or to the first error, which is not io.EOF.
func readEvents(r io.Reader) (events []ledger.Event, offset int64, err error) {
	er, err := NewEventReader(r)
	if err != nil {
		return nil, 0, err
	}
	for {
		e, err := er.Read()
		if err == io.EOF {
			return events, er.Offset(), nil
		}
		if err != nil {
			return events, er.Offset(), err
		}
		events = append(events, e)
	}
}

func TestEventFileGivesBackItsEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genList(t, genEvent)
		file, _ := writeEvents(t, want)
		got, offset, err := readEvents(iotest.OneByteReader(bytes.NewReader(file)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		if offset != int64(len(file)) {
			t.Fatalf("offset %d at the end of %d bytes", offset, len(file))
		}
	})
}

func TestCutEventFileGivesWholeEventsAndThePlace(t *testing.T) {
	events, _ := goldenValues()
	file, starts := writeEvents(t, events)
	for cut := range file {
		got, offset, err := readEvents(bytes.NewReader(file[:cut]))
		whole := 0
		for whole < len(events) && starts[whole+1] <= cut {
			whole++
		}
		if len(got) != whole {
			t.Fatalf("cut to %d bytes: %d events, want %d", cut, len(got), whole)
		}
		if cut == starts[whole] {
			if err != nil {
				t.Errorf("cut to %d bytes, between frames: %v", cut, err)
			}
			continue
		}
		var place *EventFileError
		if !errors.As(err, &place) || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ledger.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: err = %v, want an unexpected end", cut, err)
		}
		if want := int64(starts[whole]); cut >= starts[0] && (place.Offset != want || offset != want) {
			t.Errorf("cut to %d bytes: the error names byte %d, offset %d, want %d", cut, place.Offset, offset, want)
		}
	}
}

func TestDamagedEventFileIsRefused(t *testing.T) {
	events, _ := goldenValues()
	file, starts := writeEvents(t, events)
	flip := func(at int) []byte {
		b := bytes.Clone(file)
		b[at] ^= 0x10
		return b
	}
	frame := func(length []byte, event []byte) []byte {
		b := append(bytes.Clone(file[:starts[0]]), length...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(event, castagnoli))
		return append(b, event...)
	}
	status := AppendEvent(nil, &ledger.SlotStatus{Status: ledger.StatusDead})
	for name, tt := range map[string]struct {
		in     []byte
		offset int
	}{
		"magic":                     {flip(0), 0},
		"format version":            {flip(8), 0},
		"another file":              {[]byte(`{"type":"slot","slot":1}`), 0},
		"checksum":                  {flip(starts[1] + 3), starts[1]},
		"event":                     {flip(starts[2] - 1), starts[1]},
		"empty frame":               {frame([]byte{0}, nil), starts[0]},
		"length longer than needed": {frame([]byte{0x80 | byte(len(status)), 0}, status), starts[0]},
		"length over the bound":     {frame([]byte{0x81, 0x80, 0x80, 0x20}, status), starts[0]},
		"length without end":        {frame(bytes.Repeat([]byte{0xff}, 9), status), starts[0]},
		"no event, right checksum":  {frame([]byte{3}, []byte{1, 9, 9}), starts[0]},
	} {
		_, _, err := readEvents(bytes.NewReader(tt.in))
		var place *EventFileError
		if !errors.Is(err, ledger.ErrCorrupt) || !errors.As(err, &place) || place.Offset != int64(tt.offset) {
			t.Errorf("%s: err = %v, want ErrCorrupt at byte %d", name, err, tt.offset)
		}
	}
}

func TestLengthOfFrameTakesNoMemoryBeforeItsBytes(t *testing.T) {
	file, _ := writeEvents(t, nil)
	file = append(binary.AppendUvarint(file, MaxEventBytes), 0, 0, 0, 0, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := readEvents(bytes.NewReader(file))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("err = %v, want an unexpected end", err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("a frame that claims %d bytes took %d", MaxEventBytes, taken)
	}
}

func TestOversizeEventIsRefusedAndWritesNothing(t *testing.T) {
	var buf bytes.Buffer
	w, err := NewEventWriter(&buf)
	if err != nil {
		t.Fatal(err)
	}
	header := buf.Len()
	huge := &ledger.Block{Transactions: []ledger.Transaction{{Accounts: make([]ledger.Pubkey, MaxEventBytes/32)}}}
	if err := w.Write(huge); err == nil || buf.Len() != header {
		t.Fatalf("err = %v, %d bytes written", err, buf.Len()-header)
	}
	want := &ledger.SlotStatus{Slot: 1, Status: ledger.StatusDead}
	if err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	if got, _, err := readEvents(&buf); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("after it: %+v, %v", got, err)
	}
}

func TestErrorsOfReaderAndWriterComeThrough(t *testing.T) {
	failure := errors.New("disk on fire")
	file, _ := writeEvents(t, []ledger.Event{&ledger.SlotStatus{Status: ledger.StatusDead}})
	if _, _, err := readEvents(io.MultiReader(bytes.NewReader(file), iotest.ErrReader(failure))); !errors.Is(err, failure) {
		t.Errorf("reading: err = %v, want %v", err, failure)
	}
	if _, err := NewEventWriter(failingWriter{failure}); !errors.Is(err, failure) {
		t.Errorf("writing: err = %v, want %v", err, failure)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func FuzzEventFile(f *testing.F) {
	events, _ := goldenValues()
	file, starts := writeEvents(f, events)
	f.Add(file)
	f.Add(file[:starts[1]])
	f.Add(file[:starts[1]-1])
	f.Fuzz(func(t *testing.T, in []byte) {
		events, offset, err := readEvents(bytes.NewReader(in))
		if err != nil {
			var place *EventFileError
			if !errors.As(err, &place) || !errors.Is(err, ledger.ErrCorrupt) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("reading %x: %v is of no known kind", in, err)
			}
		}
		if offset == 0 {
			return // no header
		}
		if again, _ := writeEvents(t, events); !bytes.Equal(again, in[:offset]) {
			t.Fatalf("%x is read as %+v and written as %x", in[:offset], events, again)
		}
	})
}
