package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// feeder writes event lines into a named pipe that a node reads, and knows when the node
// has understood them.
type feeder struct {
	*os.File
	marks int
}

// newFeeder makes a pipe. It never ends while the test runs, whether somebody reads or not.
func newFeeder(t *testing.T) *feeder {
	t.Helper()
	pipe, err := os.OpenFile(newPipe(t, "events.ndjson"), os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { pipe.Close() })
	return &feeder{File: pipe}
}

func newPipe(t *testing.T, name string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}

// release lets those go on who wait for a pipe that nobody writes to: they find its end.
func release(t *testing.T, path string) {
	t.Helper()
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	os.Remove(path) // so that nobody opens it later
	pipe.Close()
}

// tell writes lines and waits until all they led to was published, to REST and to sockets.
//
// After the lines it writes base state of an account that nothing else names, which is seen
// once everything before it is. It does so twice: one publication is seen by REST just
// before the sockets are told, and of two the first is through.
func (f *feeder) tell(a *api, slot uint64, lines ...string) {
	a.Helper()
	_, err := f.WriteString(strings.Join(lines, ""))
	must(a, err)
	for range 2 {
		f.marks++
		mark := account("mark", f.marks, systemProgram)
		_, err := f.WriteString(jsonLine(map[string]any{"type": "accounts", "slot": slot, "accounts": []any{mark}}))
		must(a, err)
		until(a, a.base+"/account/"+mark.Pubkey, func() {}, fmt.Sprintf(`"lamports":%d,`, f.marks))
	}
}

// socket is a WebSocket of a node.
type socket struct {
	testing.TB
	name  string
	conn  *websocket.Conn
	pings int
}

// listen connects to the broadcaster with a query.
func (a *api) listen(query string) *socket {
	a.Helper()
	conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(a.base, "http")+"/ws/accounts"+query, nil)
	if err != nil {
		a.Fatalf("cannot connect with %q: %v", query, err)
	}
	response.Body.Close()
	a.Cleanup(func() { conn.Close() })
	s := &socket{TB: a, name: query, conn: conn}
	s.sync() // the node knows the subscriber now
	return s
}

// sync returns the frames that were sent before now, without heartbeats.
func (s *socket) sync() (frames []string) {
	s.Helper()
	s.pings++
	must(s, s.conn.WriteJSON(map[string]any{"type": "ping", "id": s.pings}))
	for {
		text := s.next()
		var head struct {
			Type string
			ID   json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &head); err != nil {
			s.Fatalf("%s: frame %q: %v", s.name, text, err)
		}
		switch {
		case head.Type == "pong" && string(head.ID) == fmt.Sprint(s.pings):
			return frames
		case head.Type != "heartbeat":
			frames = append(frames, text)
		}
	}
}

// next reads one frame.
func (s *socket) next() string {
	s.Helper()
	must(s, s.conn.SetReadDeadline(time.Now().Add(patience)))
	_, text, err := s.conn.ReadMessage()
	if err != nil {
		s.Fatalf("%s: %v", s.name, err)
	}
	return string(text)
}
