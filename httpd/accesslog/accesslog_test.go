package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// F55: a pipe that nobody reads takes a part of the lines and then no more. What waits for it goes into the file that is opened anew, whole.
func TestLinesThatCannotBeWrittenWaitOrAreDropped(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	l, err := Open(t.TempDir()+"/access.log", slog.New(slog.NewTextHandler(&said, nil)))
	unread, pipe, err2 := os.Pipe()
	ledgertest.Must(t, errors.Join(err, err2, l.file.Close()))
	l.file = pipe
	const most = 40_000
	for i := range most {
		l.Append(Entry{Method: []byte("\"\xff\n"), Path: bytes.Repeat([]byte{'"'}, maxPathBytes+1)})
		if i == most/2 {
			l.write()
		}
	}
	l.replace()
	l.write()
	l.write()
	content, err := os.ReadFile(l.path)
	inPipe, err2 := io.ReadAll(unread)
	ledgertest.Must(t, errors.Join(err, err2, l.file.Close()))
	for line := range bytes.Lines(content) {
		if !json.Valid(line) || line[len(line)-1] != '\n' {
			t.Fatalf("%s is no whole line", line)
		}
	}
	written, dropped := int(l.written.Load()), int(l.dropped.Load())
	ledgertest.Equal(t, bytes.Count(content, []byte{'\n'})+bytes.Count(inPipe, []byte{'\n'}), written, "lines that are there")
	if written+dropped != most || dropped == 0 || len(inPipe) == 0 || len(content) < bufferBytes || bytes.Count(said.Bytes(), []byte("WARN")) != 1 {
		t.Errorf("%d lines written, %d dropped, %d bytes in the pipe and %d in the file:\n%s", written, dropped, len(inPipe), len(content), &said)
	}
}
