package accesslog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ledgerd/httpd/encode"
	"ledgerd/httpd/promtext"
)

const (
	// bufferBytes bounds the lines that gather while others are being written: some 25,000. When it is full, lines are dropped.
	bufferBytes   = 4 << 20
	writeInterval = 100 * time.Millisecond
	// writeTimeout bounds how long a pipe that nobody reads holds up the end of the node. Files have no timeout.
	writeTimeout = 500 * time.Millisecond
	// endTimeout bounds how long a disk that does not answer holds up the end of the node.
	endTimeout = time.Second

	// What clients choose is cut to this.
	maxMethodBytes = 32
	maxPathBytes   = 256
	maxTraceBytes  = 64 // a traceparent has 55
)

// Entry is what the log tells of one answered request, or of a WebSocket at its end. What is bytes is copied.
type Entry struct {
	Time         time.Time  // when the request had come
	Client       netip.Addr // the whole address
	Method, Path []byte     // as they were sent, the path without its query; empty: they are not to be trusted
	Status       int
	Bytes        int           // of the body, as it is sent
	Took         time.Duration // until the answer was complete in memory, or one in pieces sent, or the socket ended
	Tier         string        // of the API key; empty: there is none

	RequestID, Traceparent []byte // of the fields of these names; empty: there are none
	SocketEnded            bool
}

// appendLine appends the line of the entry.
func (e *Entry) appendLine(dst []byte) []byte {
	dst = e.Time.UTC().AppendFormat(append(dst, `{"time":"`...), "2006-01-02T15:04:05.000Z")
	dst = e.Client.AppendTo(append(dst, `","client":"`...))
	dst = appendStart(append(dst, `","method":`...), e.Method, maxMethodBytes)
	dst = appendStart(append(dst, `,"path":`...), e.Path, maxPathBytes)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(e.Status), 10)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), int64(e.Bytes), 10)
	dst = strconv.AppendInt(append(dst, `,"duration_us":`...), e.Took.Microseconds(), 10)
	if e.Tier != "" {
		dst = encode.AppendString(append(dst, `,"tier":`...), e.Tier)
	}
	if len(e.RequestID) > 0 {
		dst = appendStart(append(dst, `,"request_id":`...), e.RequestID, maxTraceBytes)
	}
	if len(e.Traceparent) > 0 {
		dst = appendStart(append(dst, `,"traceparent":`...), e.Traceparent, maxTraceBytes)
	}
	if e.SocketEnded {
		dst = append(dst, `,"socket":"ended"`...)
	}
	return append(dst, "}\n"...)
}

// appendStart appends the first bytes of a text as a JSON string.
func appendStart(dst, text []byte, most int) []byte {
	text = text[:min(len(text), most)]
	if bytes.ContainsFunc(text, mayNeedEscape) {
		return encode.AppendString(dst, string(text))
	}
	return append(append(append(dst, '"'), text...), '"') // nearly all texts are such, and this allocates nothing
}

// mayNeedEscape is false for what can stand in a JSON string as it is.
func mayNeedEscape(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }

// Log is an access log. Append, Reopen and WriteMetrics may be called by any goroutine.
type Log struct {
	path   string
	log    *slog.Logger
	reopen chan struct{} // has room for one: further requests ask for the same

	written, dropped atomic.Uint64

	mu    sync.Mutex
	lines []byte // gathered since the last write

	// What follows is touched by Run alone.

	file    file
	pending []byte // lines that are being written
	torn    bool   // the first of them is in the file in part
	cut     bool   // the file ends within another line, which is ended first
	failing bool   // the last write failed
}

// file is what lines are written to.
type file interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error // an error says that it is a file, which has none
}

// Open opens a log, whose file it creates if there is none. What fails later is said to log.
func Open(path string, log *slog.Logger) (*Log, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return &Log{path: path, log: log, reopen: make(chan struct{}, 1), file: file, cut: endsInLine(path)}, nil
}

// open opens a file, or a pipe if somebody reads it: it does not wait for a reader.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o640)
}

// endsInLine reports whether a file ends within a line, as a full disk leaves it.
func endsInLine(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // nothing was written to it
	last := []byte{'\n'}
	if _, err := f.Seek(-1, io.SeekEnd); err != nil {
		return false // it is empty, or a pipe
	}
	_, _ = f.Read(last) // what cannot be read is left alone
	return last[0] != '\n'
}

// Append adds a line, or drops it if the buffer is full.
func (l *Log) Append(e Entry) {
	line := e.appendLine(make([]byte, 0, 512))
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines)+len(line) > bufferBytes {
		l.dropped.Add(1)
		return
	}
	l.lines = append(l.lines, line...)
}

// SocketEnds returns what is to be called when the WebSocket ends that a request began: it adds a line like that of the request, with how long
// the socket lived. now is the clock.
func (l *Log) SocketEnds(e Entry, now func() time.Time) func() {
	e.Method, e.Path = bytes.Clone(e.Method), bytes.Clone(e.Path)
	e.RequestID, e.Traceparent, e.SocketEnded = bytes.Clone(e.RequestID), bytes.Clone(e.Traceparent), true
	return func() {
		e.Took = now().Sub(e.Time)
		l.Append(e)
	}
}

// Reopen has Run open the file anew, because the one that is open may have got another name. It does not wait for that.
func (l *Log) Reopen() {
	select {
	case l.reopen <- struct{}{}:
	default:
	}
}

// Run writes lines until ctx ends, then those that are left, and closes the file. It does not wait long for a disk that does not answer: nothing
// interrupts a write to one, so what writes then is left to end with the process.
func (l *Log) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx)
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(endTimeout):
		l.log.Warn("the access log's disk does not answer: its last lines are lost", "path", l.path)
	}
}

func (l *Log) run(ctx context.Context) {
	tick := time.NewTicker(writeInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.write()
		case <-l.reopen:
			l.replace()
		case <-ctx.Done():
			l.write() // what an earlier write has left, if there is any
			l.write()
			_ = l.file.Close() // nothing is lost that was written
			return
		}
	}
}

// write writes what an earlier write has left, or else what has gathered since. What cannot be written stays.
func (l *Log) write() {
	if len(l.pending) == 0 {
		l.mu.Lock()
		l.lines, l.pending = l.pending, l.lines
		l.mu.Unlock()
	}
	if len(l.pending) == 0 {
		return
	}
	_ = l.file.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := 0, l.endLine()
	if err == nil {
		n, err = l.file.Write(l.pending)
	}
	if n > 0 {
		l.torn = l.pending[n-1] != '\n'
	}
	l.written.Add(uint64(bytes.Count(l.pending[:n], []byte{'\n'})))
	l.pending = slices.Delete(l.pending, 0, n)
	switch {
	case err != nil && !l.failing:
		l.log.Warn("cannot write the access log: lines wait, and are dropped when too many do", "error", err)
	case err == nil && l.failing:
		l.log.Info("the access log is written again", "path", l.path)
	}
	l.failing = err != nil
}

// endLine ends the line that the file at hand ended within when it was opened.
func (l *Log) endLine() error {
	if !l.cut {
		return nil
	}
	_, err := l.file.Write([]byte{'\n'})
	l.cut = err != nil
	return err
}

// replace writes what it can to the file that is open, and goes on with the one that has its name now.
func (l *Log) replace() {
	file, err := open(l.path)
	if err != nil {
		l.log.Warn("cannot open the access log anew: the file before stays in use", "error", err)
		return
	}
	l.write()
	_ = l.file.Close() // nothing is lost that was written
	l.file = file
	inLine := endsInLine(l.path)
	l.cut = inLine && !l.torn
	if l.torn && !inLine { // its rest belongs to the file before
		_, l.pending, _ = bytes.Cut(l.pending, []byte{'\n'})
		l.dropped.Add(1)
		l.torn = false
	}
	l.log.Info("the access log is opened anew", "path", l.path)
}

// WriteMetrics writes the log's figures in the Prometheus text format.
func (l *Log) WriteMetrics(w io.Writer) {
	promtext.Value(w, "ledgerd_access_log_lines_total", "counter", "Lines written to the access log.", l.written.Load())
	promtext.Value(w, "ledgerd_access_log_dropped_total", "counter", "Lines that the access log lacks, because they came faster than they could be written.", l.dropped.Load())
}
