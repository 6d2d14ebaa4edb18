package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fasthttp/websocket"
)

// newFeeder makes a pipe. It never ends while the test runs, whether somebody reads or not.
func newFeeder(t *testing.T) *os.File {
	t.Helper()
	pipe, err := os.OpenFile(newPipe(t, "events.ndjson"), os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { pipe.Close() })
	return pipe
}

func newPipe(t *testing.T, name string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}

// openSocket connects a WebSocket until the test ends. The node knows the subscriber when it returns.
func openSocket(t testing.TB, base, query string) *websocket.Conn {
	t.Helper()
	conn, response, err := websocket.DefaultDialer.Dial(streamURL(base)+query, nil)
	must(t, err)
	response.Body.Close()
	t.Cleanup(func() { conn.Close() })
	must(t, conn.WriteJSON(map[string]any{"type": "ping", "id": 1}))
	for text := []byte(nil); !strings.Contains(string(text), `"pong"`); {
		_, text, err = conn.ReadMessage()
		must(t, err)
	}
	return conn
}
