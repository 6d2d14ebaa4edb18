package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
)

// longestStop is what a clean stop may take on a machine that has time for it.
const longestStop = 10 * time.Second

// endsGoingAway reads what a socket sends to its end, which is that of a node that stops.
func endsGoingAway(t *testing.T, conn *websocket.Conn, what string) {
	t.Helper()
	err := error(nil)
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("%s ended with %v, want close code 1001", what, err)
	}
}

// F48: in a stop while clients follow, ask and wait every socket ends with 1001, every answer is whole, and /readyz fails.
func TestCleanStopWithClientsConnected(t *testing.T) {
	t.Parallel()
	v := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=500,slot_time=5ms,fork_rate=0.2").ready()
	var clients sync.WaitGroup
	for _, query := range []string{"", "?extended=true", "?mode=none", "?commitment=finalized", "?programs=" + systemProgram} {
		socket := openSocket(t, v.base, query)
		clients.Go(func() { endsGoingAway(t, socket, "socket "+query) })
	}
	for range 4 {
		clients.Go(func() { pollUntilStop(t, v.base+"/accounts?keys="+systemProgram) })
	}
	// A question that waits for a slot far away gets its answer, not a cut.
	asked := make(chan struct{})
	clients.Go(func() {
		close(asked)
		a, err := ask(client, v.base+"/blocks/latest?min_slot=1000000000000&wait_ms=2000")
		if err != nil || a.status != http.StatusServiceUnavailable || !json.Valid([]byte(a.body)) {
			t.Errorf("a question that waited: %d %s, %v, want 503 and an error record", a.status, a.body, err)
		}
	})
	<-asked
	silent := openSocket(t, v.base, "?mode=none") // never answers the close frame, so that stopping takes its time
	silent.SetCloseHandler(func(int, string) error { return nil })
	v.Signal(syscall.SIGTERM)
	endsGoingAway(t, silent, "the silent socket")
	if a, err := v.ask(v.ops + "/readyz"); err != nil || a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "stopping") {
		t.Errorf("/readyz while stopping: %d %s, %v, want 503 and the reason", a.status, a.body, err)
	}
	if a, err := v.ask(v.ops + "/livez"); err != nil || a.status != http.StatusOK {
		t.Errorf("/livez while stopping: %d %s, %v", a.status, a.body, err)
	}
	ledgertest.Equal(t, v.gone(patience), exitOK, "the exit code after a signal, of what said\n%s", v.errs)
	clients.Wait()
}

// pollUntilStop asks again and again, each time on a new connection. Answers are whole until
// there are none any more.
func pollUntilStop(t *testing.T, url string) {
	for {
		a, err := ask(client, url)
		if a.status == 0 {
			return
		}
		if err != nil || !json.Valid([]byte(a.body)) {
			t.Errorf("GET %s: %d, cut answer %q: %v", url, a.status, a.body, err)
			return
		}
	}
}

// F48: a second signal ends a node at once that is stopping, here one that waits for a client which does not answer the close frame.
// A restart has all that was shown.
func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		ended := false
		for try := 0; try < 10 && !ended; try++ { // on a busy machine the node may have stopped before the second signal comes
			data := t.TempDir()
			v := launch(t, "--data-dir", data, "--source", "sim:accounts=300,slot_time=4ms").ready()
			silent := openSocket(t, v.base, "?mode=none")
			silent.SetCloseHandler(func(int, string) error { return nil })
			shown := newestSlot(v)
			v.Signal(signal)
			endsGoingAway(t, silent, "the silent socket")
			v.Signal(signal)
			code := v.gone(patience)
			if ended = code == -1; !ended && code != exitOK {
				t.Errorf("after a second %v it ended with %v:\n%s", signal, v.State(), v.errs)
			}
			restartShows(t, data, shown)
		}
		if !ended {
			t.Errorf("a second %v ended no node", signal)
		}
	}
}

// F48: a signal may come at any moment of the start. These nodes are in the process of the tests, which fails where a goroutine of one is left.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		ctx, stop := context.WithCancel(t.Context())
		out, errs := newTranscript(), newTranscript()
		var serving sync.WaitGroup
		serving.Go(func() {
			defer out.End()
			args := []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--source", "sim:accounts=1000,slot_time=0"}
			ledgertest.Equal(t, run(ctx, args, &streams{out, errs}), exitOK, "the exit code after a signal, of what said\n%s", errs)
		})
		if i%2 == 1 {
			out.await(t, "REST")
		}
		stop()
		serving.Wait()
	}
}

// F48: a signal may come while the log is read again, which is as it was afterwards.
func TestStopDuringReplay(t *testing.T) {
	t.Parallel()
	random, _ := seededRand(t)
	data := t.TempDir()
	v := launch(t, "--data-dir", data, "--wal-sync", "off", "--snapshot-interval", "0", "--source", "sim:accounts=2000,tps=20000,slot_time=0,slots=8").ready()
	v.ending()
	shown := newestSlot(v)
	v.Kill()
	v = launch(t, "--data-dir", data, "--source", "none").listened()
	begun := time.Now()
	v.ready().Kill()
	whole := time.Since(begun)
	stopped := 0
	for tries := repetitions(t, "LEDGERD_CRASH_CYCLES", 3); tries > 0 || stopped == 0 && tries > -20; tries-- { // some come after it
		v := launch(t, "--data-dir", data, "--source", "none").listened()
		time.Sleep(time.Duration(random.Int64N(int64(whole / 2))))
		v.Signal(syscall.SIGTERM)
		ledgertest.Equal(t, v.gone(patience), exitOK, "the exit code after a signal, of what said\n%s", v.errs)
		if !strings.Contains(v.errs.String(), "msg=recovered") {
			stopped++
		}
	}
	if stopped == 0 {
		t.Errorf("no replay of %v was stopped", whole)
	}
	restartShows(t, data, shown)
}

// F31, F48: a stop takes ten seconds at most whatever peers leave undone, plain or over TLS: they follow and do not read, ask for more than they read and then
// shake hands for a socket, have not finished a request, say nothing. Where it took longer another node is stopped, at most twice: the machine may be busy.
func TestStopWhateverPeersDo(t *testing.T) {
	const handshake = "GET /api/ws/accounts?extended=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	list := "GET /api/accounts/program/" + systemProgram + "?limit=10000 HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, args := range map[string][]string{"plain": nil, "TLS": encrypted(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := longestStop
			for try := 0; try < 3 && took >= longestStop; try++ {
				v := launch(t, append(args, "--data-dir", t.TempDir(), "--source", "sim:accounts=19800,tps=3000,slot_time=20ms")...).ready()
				slow := make(chan struct{})
				for _, sent := range []string{handshake, strings.Repeat(list, 8) + handshake, list + handshake, list, "GET /api/status HTTP/1.1\r\nHost: x\r\nX: ", ""} {
					for range 5 {
						_, err := io.WriteString(v.mustDial(1, slow), sent)
						must(t, err)
					}
				}
				v.until("the sockets are open, but for those in front of which somebody waits", func() bool { return v.metric("ledgerd_ws_connections") >= 5 })
				signaled := time.Now()
				v.stop()
				took = time.Since(signaled)
			}
			if took >= longestStop {
				t.Errorf("the last of three stops took %v, want less than %v", took, longestStop)
			}
		})
	}
}

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
