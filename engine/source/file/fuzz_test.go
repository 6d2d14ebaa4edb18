package file

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodejson"
)

// checkEvent is an emit that fails the test unless the event survives its encoding and
// keeps what the sequencer relies on.
func checkEvent(t *testing.T) ledger.Emit {
	return func(_ context.Context, e ledger.Event) error {
		encoded := codec.AppendEvent(nil, e)
		decoded, err := codec.DecodeEvent(encoded)
		if err != nil {
			t.Fatalf("an emitted event does not decode: %v\n%+v", err, e)
		}
		if again := codec.AppendEvent(nil, decoded); !bytes.Equal(again, encoded) {
			t.Fatalf("an emitted event changes in its encoding:\n%+v\n%+v", e, decoded)
		}
		checkEventLine(t, e)
		switch e := e.(type) {
		case *ledger.Block:
			if e.Slot <= e.ParentSlot && e.Slot != 0 {
				t.Fatalf("block %d has parent %d", e.Slot, e.ParentSlot)
			}
		case *ledger.BaseState:
			if n := len(e.Accounts) + len(e.Mints); n > maxBaseAccounts {
				t.Fatalf("base state of %d accounts and mints", n)
			}
		}
		return nil
	}
}

// checkEventLine fails the test unless the event survives being written as an event line. Two events are the same if
// their encodings are: each value has exactly one.
func checkEventLine(t *testing.T, e ledger.Event) {
	line := AppendEventLine(nil, e)
	again, err := parse(line)
	if err != nil {
		t.Fatalf("the line of an event is refused: %v\n%s", err, line)
	}
	if !bytes.Equal(codec.AppendEvent(nil, again), codec.AppendEvent(nil, e)) {
		t.Fatalf("an event changes in its line:\n%+v\n%+v\n%s", e, again, line)
	}
	if twice := AppendEventLine([]byte("x"), again); string(twice) != "x"+string(line) {
		t.Fatalf("written again: %s, want %s", twice, line)
	}
}

// checkMessage fails the test if an error could carry more of the input than a number.
func checkMessage(t *testing.T, err error) {
	if err != nil && (len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\x00\n\r\x1b\ufffd")) {
		t.Fatalf("message %q", err)
	}
}

// fuzzReader has what a reader emits of any content checked: it gives events that can be encoded, or an error; never a
// panic. The seeds are the entries of testdata and all bad inputs but the huge ones.
func fuzzReader(f *testing.F, read func(ctx context.Context, r *bufio.Reader, data *nodejson.DataDecoder, out *sink) error) {
	for _, lines := range datatest.Entries(f, "read.txt") {
		f.Add([]byte(lines[1] + lines[2]))
		f.Add([]byte(lines[1]))
	}
	for _, tt := range badInputs(f) {
		if len(tt.content) < readAheadBytes {
			f.Add([]byte(tt.content))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		data := new(nodejson.DataDecoder)
		defer data.Close()
		checkMessage(t, read(t.Context(), bufio.NewReader(bytes.NewReader(content)), data, &sink{emit: checkEvent(t)}))
	})
}

// F27: whatever is said to be what a node answered, it is read, or refused in a line that quotes nothing.
func FuzzBlockJSON(f *testing.F) {
	fuzzReader(f, func(ctx context.Context, r *bufio.Reader, data *nodejson.DataDecoder, out *sink) error {
		return (&jsonReader{log: slog.New(slog.DiscardHandler), data: data, out: out}).run(ctx, r)
	})
}

// F27: and whatever is said to be event lines.
func FuzzNDJSON(f *testing.F) {
	fuzzReader(f, func(ctx context.Context, r *bufio.Reader, data *nodejson.DataDecoder, out *sink) error {
		return (&lineReader{data: data, out: out}).run(ctx, r)
	})
}
