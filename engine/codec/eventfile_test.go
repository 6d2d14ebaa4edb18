package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// writeEvents returns an event file and where its frames begin; the last is its end.
func writeEvents(t testing.TB, events []ledger.Event) (file []byte, starts []int) {
	var buf bytes.Buffer
	w, err := NewEventWriter(&buf)
	ledgertest.Must(t, err)
	for _, e := range events {
		starts = append(starts, buf.Len())
		ledgertest.Must(t, w.Write(e))
	}
	return buf.Bytes(), append(starts, buf.Len())
}

// readEvents reads to the end or to the first error, which is not io.EOF.
func readEvents(r io.Reader) (events []ledger.Event, offset int64, err error) {
	er, err := NewEventReader(r)
	for err == nil {
		var e ledger.Event
		if e, err = er.Read(); err == nil {
			events = append(events, e)
		}
	}
	if er != nil {
		offset = er.offset
	}
	if err == io.EOF {
		err = nil
	}
	return events, offset, err
}

func TestCutEventFileGivesWholeEventsAndThePlace(t *testing.T) {
	events, _ := goldens(t)
	file, starts := writeEvents(t, events)
	same := func(a, b ledger.Event) bool { return reflect.DeepEqual(a, b) }
	for cut := range len(file) + 1 {
		got, offset, err := readEvents(iotest.OneByteReader(bytes.NewReader(file[:cut])))
		whole, place := 0, 0
		for whole < len(events) && starts[whole+1] <= cut {
			whole++
		}
		if cut >= starts[0] {
			place = starts[whole]
		}
		if clean := cut == starts[whole]; !slices.EqualFunc(got, events[:whole], same) || clean != (err == nil) || offset != int64(place) {
			t.Errorf("cut to %d bytes: got %+v, %v at byte %d, want %+v at %d", cut, got, err, offset, events[:whole], place)
		} else if !clean && (!errors.Is(err, io.ErrUnexpectedEOF) || !isPlace(err, place)) {
			t.Errorf("cut to %d bytes: err = %v, want an unexpected end at byte %d", cut, err, place)
		}
	}
}

// isPlace reports whether an error names a byte of an event file.
func isPlace(err error, at int) bool {
	return err != nil && strings.HasPrefix(err.Error(), fmt.Sprintf("event file at byte %d: ", at))
}

// F27: damage is refused with the place of its frame.
func TestDamagedEventFileIsRefused(t *testing.T) {
	events, _ := goldens(t)
	file, starts := writeEvents(t, events)
	flip := func(at int) []byte {
		b := bytes.Clone(file)
		b[at] ^= 0x10
		return b
	}
	status := AppendEvent(nil, &ledger.SlotStatus{Status: ledger.StatusDead})
	frame := func(length []byte, event []byte) []byte {
		b := append(bytes.Clone(file[:starts[0]]), length...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(event, castagnoli))
		return append(append(b, event...), status...) // no frame is so short that it ends with what is peeked
	}
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
		if _, _, err := readEvents(bytes.NewReader(tt.in)); !errors.Is(err, ledger.ErrCorrupt) || !isPlace(err, tt.offset) {
			t.Errorf("%s: err = %v, want ErrCorrupt at byte %d", name, err, tt.offset)
		}
	}
}

func TestOversizeEventIsRefusedAndWritesNothing(t *testing.T) {
	var buf bytes.Buffer
	w, err := NewEventWriter(&buf)
	ledgertest.Must(t, err)
	huge := &ledger.Block{Transactions: []ledger.Transaction{{Accounts: make([]ledger.Pubkey, MaxEventBytes/32)}}}
	want := &ledger.SlotStatus{Slot: 1, Status: ledger.StatusDead}
	ledgertest.ErrorSays(t, w.Write(huge), "is over the bound of", "an event that is too large")
	ledgertest.ErrorIs(t, w.Write(want), nil, "the next event")
	if got, _, err := readEvents(&buf); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("after it: %+v, %v", got, err)
	}
}

func TestErrorsOfReaderAndWriterComeThrough(t *testing.T) {
	failure := errors.New("disk on fire")
	file, _ := writeEvents(t, []ledger.Event{&ledger.SlotStatus{Status: ledger.StatusDead}})
	_, _, err := readEvents(io.MultiReader(bytes.NewReader(file), iotest.ErrReader(failure)))
	ledgertest.ErrorIs(t, err, failure, "reading")
	r, w := io.Pipe()
	r.CloseWithError(failure)
	_, err = NewEventWriter(w)
	ledgertest.ErrorIs(t, err, failure, "writing")
}

func FuzzEventFile(f *testing.F) {
	events, _ := goldens(f)
	file, starts := writeEvents(f, events)
	f.Add(file)
	f.Add(file[:starts[1]])
	f.Add(file[:starts[1]-1])
	f.Fuzz(func(t *testing.T, in []byte) {
		events, offset, err := readEvents(bytes.NewReader(in))
		if err != nil && (!isPlace(err, int(offset)) || !errors.Is(err, ledger.ErrCorrupt) && !errors.Is(err, io.ErrUnexpectedEOF)) {
			t.Fatalf("reading %x: %v is of no known kind", in, err)
		}
		if offset == 0 {
			return // no header
		}
		if again, _ := writeEvents(t, events); !bytes.Equal(again, in[:offset]) {
			t.Fatalf("%x is read as %+v and written as %x", in[:offset], events, again)
		}
	})
}
