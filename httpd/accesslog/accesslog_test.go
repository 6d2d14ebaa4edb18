package accesslog

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// F55: a pipe that nobody reads takes a part of the lines and then no more. What waits for it goes into the file that is opened anew, whole.
func TestLinesThatCannotBeWrittenWaitOrAreDropped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "access.log")
	var said bytes.Buffer
	l, err := Open(path, slog.New(slog.NewTextHandler(&said, nil)))
	ledgertest.Must(t, err)
	_ = l.file.Close()
	unread, pipe, err := os.Pipe()
	ledgertest.Must(t, err)
	l.file = pipe
	const half = 20_000
	fill := func() {
		for range half {
			l.Append(Entry{Method: []byte("\"\xff\n"), Path: bytes.Repeat([]byte{'"'}, maxPathBytes+1)})
		}
	}
	fill()
	l.write()
	fill()
	l.replace()
	l.write()
	l.write()
	ledgertest.Must(t, l.file.Close())
	content, err := os.ReadFile(path)
	ledgertest.Must(t, err)
	for line := range bytes.Lines(content) {
		if !json.Valid(line) || line[len(line)-1] != '\n' {
			t.Fatalf("%s is no whole line", line)
		}
	}
	inPipe, err := io.ReadAll(unread)
	ledgertest.Must(t, err)
	written, dropped := int(l.written.Load()), int(l.dropped.Load())
	ledgertest.Equal(t, bytes.Count(content, []byte{'\n'})+bytes.Count(inPipe, []byte{'\n'}), written, "lines that are there")
	ledgertest.Equal(t, written+dropped, 2*half, "lines written and dropped")
	if warnings := bytes.Count(said.Bytes(), []byte("WARN")); warnings != 1 || dropped == 0 || len(inPipe) == 0 || len(content) < bufferBytes {
		t.Errorf("%d warnings, %d lines dropped, %d bytes in the pipe and %d in the file:\n%s", warnings, dropped, len(inPipe), len(content), &said)
	}
}
