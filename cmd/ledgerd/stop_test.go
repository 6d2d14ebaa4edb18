package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// stopsInTime waits for a node that was told to stop.
func (r *running) stopsInTime(t *testing.T) {
	t.Helper()
	const longest = 10 * time.Second
	select {
	case code := <-r.code:
		if code != exitOK {
			t.Errorf("exit code %d after a clean stop, want 0:\n%s", code, r.errs)
		}
	case <-time.After(longest):
		t.Fatalf("the node has not stopped within %v:\n%s", longest, r.errs)
	}
}

func TestCleanStopWithClientsConnected(t *testing.T) {
	t.Parallel()
	r := start(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=500,slot_time=5ms,fork_rate=0.2")
	a := dial(t, r)
	var clients sync.WaitGroup
	for _, query := range []string{"", "?extended=true", "?mode=none", "?commitment=finalized", "?programs=" + systemProgram} {
		s := a.listen(query)
		clients.Go(func() {
			for {
				if _, _, err := s.conn.ReadMessage(); err != nil {
					if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
						t.Errorf("socket %q ended with %v, want close code 1001", query, err)
					}
					return
				}
			}
		})
	}
	for range 4 {
		clients.Go(func() { pollUntilStop(t, r.base+"/accounts?keys="+systemProgram) })
	}
	// A question that waits for a slot far away gets its answer, not a cut.
	asked := make(chan struct{})
	clients.Go(func() {
		close(asked)
		status, body := get(t, r.base+"/blocks/latest?min_slot=1000000000000&wait_ms=2000")
		if status != http.StatusServiceUnavailable || !json.Valid(body) {
			t.Errorf("a question that waited: %d %s, want 503 and an error record", status, body)
		}
	})
	<-asked
	silent := a.listen("?mode=none") // never answers the close frame, so that stopping takes its time
	silent.conn.SetCloseHandler(func(int, string) error { return nil })
	r.cancel()
	for {
		if _, _, err := silent.conn.ReadMessage(); err != nil {
			if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
				t.Errorf("the silent socket ended with %v, want close code 1001", err)
			}
			break
		}
	}
	if status, body := get(t, r.ops+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(string(body), "stopping") {
		t.Errorf("/readyz while stopping: %d %s, want 503 and the reason", status, body)
	}
	if status, body := get(t, r.ops+"/livez"); status != http.StatusOK {
		t.Errorf("/livez while stopping: %d %s, want 200", status, body)
	}
	r.stopsInTime(t)
	clients.Wait()
}

// pollUntilStop asks again and again, each time on a new connection. Answers are whole until
// there are none any more.
func pollUntilStop(t *testing.T, url string) {
	for {
		response, err := client.Get(url)
		if err != nil {
			return
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(response.Body)
		response.Body.Close()
		if err != nil || !json.Valid(body.Bytes()) {
			t.Errorf("GET %s: %d, cut answer %q: %v", url, response.StatusCode, &body, err)
			return
		}
	}
}

// A signal may come at any moment of the start.
func TestStopDuringStart(t *testing.T) {
	for i := range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := &running{out: newTranscript(), errs: newTranscript(), code: make(chan int, 1)}
		go func() {
			r.code <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--source", "sim:accounts=1000,slot_time=0"}, &streams{r.out, r.errs})
		}()
		if i%2 == 1 {
			r.out.await(t, "REST")
		}
		cancel(errors.New("signal"))
		r.stopsInTime(t)
	}
}

// A pipe whose writer is silent cannot hold up the end.
func TestStopWhileThePipeIsSilent(t *testing.T) {
	pipe := newFeeder(t)
	b := abandoned.blocks["10"]
	if _, err := fmt.Fprint(pipe, b.line(nil)); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+pipe.Name())
	r.cancel()
	r.stopsInTime(t)
}
