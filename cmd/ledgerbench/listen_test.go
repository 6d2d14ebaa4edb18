package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
)

// broadcaster sends every socket the same frames. Who answers the ping behind them has counted them.
type broadcaster struct {
	frames  []string
	sockets int
	breaks  int    // so many connections end after the handshake, without a word
	all     func() // is called when so many sockets have counted all

	mu      sync.Mutex
	counted int
	asked   []string // query and fields, of each socket
}

func (b *broadcaster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/ws/accounts" {
		http.NotFound(w, r)
		return
	}
	var upgrader websocket.Upgrader
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	host, _, _ := strings.Cut(r.RemoteAddr, ":")
	b.mu.Lock()
	b.asked = append(b.asked, fmt.Sprintf("%s %s %s %s", r.URL.Query().Encode(), r.Header.Get("X-Test"), r.Header.Get("X-API-Key"), host))
	broken := len(b.asked) <= b.breaks
	b.mu.Unlock()
	if broken {
		return
	}
	conn.SetPongHandler(func(string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.counted++; b.counted == b.sockets {
			b.all()
		}
		return nil
	})
	for _, frame := range b.frames {
		_ = conn.WriteMessage(websocket.TextMessage, []byte(frame)) // or the counts tell
	}
	_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Minute))
	_, _, _ = conn.ReadMessage() // until the client goes
}

// heard is what --json must hold of what was listened to.
type heard struct {
	Updates   map[string]int
	Latencies map[string]struct{ Count int } `json:"latency_ms"`
	Settings  struct{ Keys int }
}

// listens runs the command until every socket has counted all frames.
func listens(t *testing.T, b *broadcaster, more ...string) (text string, h heard) {
	t.Helper()
	server := httptest.NewTLSServer(b)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	b.all = stop
	s := new(said)
	args := []string{"listen", "wss" + strings.TrimPrefix(server.URL, "https"), "--ca", ca, "--duration", "1h", "--json", "-"}
	for _, word := range more {
		args = append(args, strings.ReplaceAll(word, "URL", server.URL))
	}
	if code := run(ctx, args, s.streams()); code != exitOK {
		t.Fatalf("exit code %d, said %q", code, &s.err)
	}
	must(t, json.Unmarshal(s.out.Bytes(), &h))
	return s.err.String(), h
}

func update(seq int) string {
	return fmt.Sprintf(`{"type":"account_update","pubkey":"11111111111111111111111111111111","lamports":1,"timestamp":null,"slot":9,"seq":%d,"owner":"","executable":false,"commitment":"processed"}`, seq)
}

// A stream with a hole and a duplicate is counted as that, in words and in the record; what is conflated is not missing.
func TestListenCountsWhatIsMissingAndTwice(t *testing.T) {
	t.Parallel()
	gap := `{"type":"gap","from_seq":5,"to_seq":9}`
	b := &broadcaster{sockets: 2, frames: []string{update(1), update(2), update(4), update(4), update(5), gap, update(9)}}
	text, h := listens(t, b, "--sockets", "2")
	ledgertest.Contains(t, text, "updates   12 received, 2 missing, 2 twice", "the text")
	ledgertest.Equal(t, h.Updates, map[string]int{"received": 12, "missing": 2, "twice": 2, "conflated": 6}, "the updates of the record")
}

// A connection that breaks has no code, and the reason is told also where all are connected in the end.
func TestListenSaysWhyAConnectionBroke(t *testing.T) {
	t.Parallel()
	text, _ := listens(t, &broadcaster{sockets: 2, breaks: 1}, "--sockets", "2")
	ledgertest.Contains(t, text, "broke     1 without a close frame\n", "the text")
	ledgertest.Contains(t, text, "\nThe first thing that went wrong: a connection broke: websocket: close 1006 (abnormal closure): unexpected EOF.\n", "the text")
}

// Where the server lets nobody in, be it until an interrupt, the figures come, and the exit code is that of a failure. Whoever was let in and cut off is a figure.
func TestListenFailsWhereNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	cut := &broadcaster{breaks: 1 << 20}
	for want, letIn := range map[int]int64{exitFailure: 0, exitOK: 1} { // of two
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := asked.Add(1)
			if n == 7 {
				stop()
			}
			if n%2 < letIn {
				cut.ServeHTTP(w, r)
			} else {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		defer server.Close()
		s := new(said)
		code := run(ctx, []string{"listen", server.URL, "-s", "2", "-d", "1h"}, s.streams())
		if text := s.out.String() + s.err.String(); code != want || !strings.Contains(text, " of 2 connected at the end") {
			t.Errorf("exit code %d, want %d; said %q", code, want, text)
		}
	}
}

// Every socket asks as it is told to, with keys and addresses in turns; ends of slots are timed by those of another node.
func TestListenAsksAsItIsTold(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(keys, []byte("one\ntwo\n"), 0o600))
	b := &broadcaster{sockets: 5, frames: []string{update(1), `{"type":"slot_end","slot":9,"seq":1}`}}
	_, h := listens(t, b, "--sockets", "4", "--ramp", "10ms", "--throttled", "1", "--throttle", "100000", "--tokens", "--overflow", "conflate",
		"--commitment", "confirmed", "--from", "127.0.0.2,127.0.0.3", "-H", "X-Test: 1", "--api-key-file", keys, "--reference", "URL")
	const query = "commitment=confirmed&extended=true&overflow=conflate&tokens=true 1 "
	want := []string{
		"commitment=confirmed&extended=true&mode=none 1 one 127.0.0.2", query + "one 127.0.0.2", query + "one 127.0.0.2", query + "two 127.0.0.3", query + "two 127.0.0.3",
	}
	slices.Sort(b.asked)
	ledgertest.Equal(t, b.asked, want, "what the sockets asked")
	races := h.Latencies["behind_reference"].Count + h.Latencies["before_reference"].Count
	if h.Settings.Keys != 2 || h.Updates["received"] != 4 || h.Latencies["first_socket"].Count != 3 || races != 1 {
		t.Errorf("got %+v, with %d comparisons", h, races)
	}
}

// The node of reference is reached by its own address, whatever leads to the one that is listened to.
func TestListenReachesTheReferenceByItsAddress(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var heard atomic.Int64
		all := func() {
			if heard.Add(1) == 2 {
				stop()
			}
		}
		own, other := &broadcaster{sockets: 1, all: all}, &broadcaster{sockets: 1, all: all}
		path := filepath.Join(t.TempDir(), "s")
		ln, err := net.Listen("unix", path)
		must(t, err)
		here, elsewhere := httptest.NewUnstartedServer(own), httptest.NewUnstartedServer(other)
		must(t, here.Listener.Close())
		here.Listener = ln
		if scheme == "https" {
			here.StartTLS()
			elsewhere.Start()
		} else {
			here.Start()
			elsewhere.StartTLS()
		}
		defer here.Close()
		defer elsewhere.Close()
		s := new(said)
		code := run(ctx, []string{"listen", scheme + "://node.invalid", "--unix-socket", path, "--insecure", "-s", "1", "-d", "10s", "--reference", elsewhere.URL}, s.streams())
		if code != exitOK || len(own.asked) != 1 || len(other.asked) != 1 {
			t.Errorf("%s: exit code %d, said %q; %d sockets at the node and %d at the one of reference", scheme, code, &s.err, len(own.asked), len(other.asked))
		}
	}
}

// Of a slot at both nodes the difference counts once, on the side that it is on.
func TestRaceComparesEachSlotOnce(t *testing.T) {
	r, zero := newRace(), time.Unix(1, 0)
	mine, theirs := r.ended(own), r.ended(reference)
	theirs(1, zero)
	mine(1, zero.Add(time.Second))
	mine(2, zero)
	mine(2, zero.Add(time.Minute)) // again, after a fork
	theirs(2, zero.Add(3*time.Second))
	mine(3, zero)
	later, sooner := r.lag[own], r.lag[reference]
	ledgertest.Equal(t, [2]int{len(r.ends[own]), len(r.ends[reference])}, [2]int{1, 0}, "slots that wait for the other node")
	if later.Count() != 1 || sooner.Count() != 1 || later.Quantile(1).Round(time.Millisecond*10) != time.Second || sooner.Quantile(1).Round(time.Millisecond*10) != 3*time.Second {
		t.Errorf("later %v, sooner %v", later.Summary(), sooner.Summary())
	}
}
