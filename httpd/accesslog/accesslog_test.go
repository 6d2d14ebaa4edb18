package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// full is a file on a disk that takes some bytes more.
type full struct {
	*os.File
	room int
}

func (f full) Write(p []byte) (int, error) {
	n, _ := f.File.Write(p[:min(f.room, len(p))])
	return n, syscall.ENOSPC
}

// A full disk leaves a part of a line. What comes next does not become part of it, whether the file is opened anew meanwhile, or the node was started again
// on the disk that is still full.
func TestAFullDiskBreaksNoOtherLine(t *testing.T) {
	for _, c := range []struct {
		started, anew, moved bool
		lines                int // of the file in the end: two are whole
	}{{anew: true, lines: 2}, {started: true, lines: 3}, {started: true, anew: true, lines: 3}, {started: true, anew: true, moved: true, lines: 2}} {
		l, err := Open(t.TempDir()+"/access.log", slog.New(slog.DiscardHandler))
		ledgertest.Must(t, err)
		l.file = full{l.file.(*os.File), 10}
		l.Append(Entry{})
		l.write()
		if c.started {
			ledgertest.Must(t, l.file.Close())
			l, err = Open(l.path, l.log)
			ledgertest.Must(t, err)
			file := l.file.(*os.File)
			l.file = full{file, 0}
			l.Append(Entry{})
			l.write()
			if !c.anew {
				l.file = file
			}
		}
		if c.moved {
			ledgertest.Must(t, os.Rename(l.path, l.path+".1"))
		}
		if c.anew {
			l.replace()
		}
		l.Append(Entry{})
		l.write()
		l.write()
		content, err := os.ReadFile(l.path)
		ledgertest.Must(t, errors.Join(err, l.file.Close()))
		lines, whole := 0, 0
		for line := range bytes.Lines(content) {
			lines++
			if json.Valid(line) {
				whole++
			}
		}
		if written := int(l.written.Load()); lines != c.lines || whole != 2 || written != 2 {
			t.Errorf("%+v: %d lines, %d of them whole, %d counted:\n%s", c, lines, whole, written, content)
		}
	}
}

// hung is a file on a disk that does not answer until it is released.
type hung chan struct{}

func (h hung) Write(p []byte) (int, error)    { <-h; return len(p), nil }
func (h hung) Close() error                   { <-h; return nil }
func (hung) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// A disk that does not answer holds up the end for a moment, whether a write waits for it already or comes last.
func TestAHungDiskDoesNotHoldUpTheEnd(t *testing.T) {
	for _, lived := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			disk := make(hung)
			l := &Log{path: "access.log", log: slog.New(slog.NewTextHandler(&said, nil)), reopen: make(chan struct{}, 1), file: disk}
			ctx, end := context.WithTimeout(t.Context(), lived)
			defer end()
			l.Append(Entry{})
			began := time.Now()
			l.Run(ctx)
			if took := time.Since(began) - lived; took > endTimeout || !strings.Contains(said.String(), "does not answer") {
				t.Errorf("after %v: it took %v to end, and said %s", lived, took, &said)
			}
			close(disk)
		})
	}
}

func TestLinesTellWhatThereIs(t *testing.T) {
	l := &Log{}
	at := time.Date(2026, 2, 5, 12, 34, 56, 789e6, time.UTC)
	path := []byte("/api/ws/accounts")
	e := Entry{Time: at, Path: path, Method: []byte("GET"), Status: 101, Tier: "gold", RequestID: []byte("a\"b"), Traceparent: bytes.Repeat([]byte("0"), 100)}
	ended := l.SocketEnds(e, func() time.Time { return at.Add(time.Hour) })
	l.Append(e)
	copy(path, "overwritten by another request")
	ended()
	trace := strings.Repeat("0", maxTraceBytes)
	const line = `{"time":"2026-02-05T12:34:56.789Z","client":"","method":"GET","path":"/api/ws/accounts","status":101,"bytes":0,"duration_us":`
	want := line + `0,"tier":"gold","request_id":"a\"b","traceparent":"` + trace + "\"}\n" +
		line + `3600000000,"tier":"gold","request_id":"a\"b","traceparent":"` + trace + `","socket":"ended"}` + "\n"
	ledgertest.Equal(t, string(l.lines), want, "the lines")
}
