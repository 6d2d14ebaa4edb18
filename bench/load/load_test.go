package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbered is a script that asks for /0, /1 and so on.
func numbered(count int) Script {
	return NewScript(count, func(dst []byte, i int) []byte {
		return AppendGet(dst, "127.0.0.1:1", fmt.Sprintf("/%d", i))
	})
}

func number(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Path[1:])
	if err != nil {
		panic(err)
	}
	return n
}

// echo answers with the path, and 404 for each seventh; some bodies are longer than what is read at once.
func echo(w http.ResponseWriter, r *http.Request) {
	n, body := number(r), r.URL.Path
	if n%50 == 0 {
		body += strings.Repeat("x", 100_000)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if n%7 == 0 {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, body)
}

// verifyEcho sees that a response is that of its request.
func verifyEcho(i int, r *fasthttp.Response) error {
	want := fmt.Sprintf("/%d", i)
	if strings.TrimRight(string(r.Body()), "x") != want || (r.StatusCode() == 404) != (i%7 == 0) {
		return fmt.Errorf("%s was answered %d %.20q", want, r.StatusCode(), r.Body())
	}
	return nil
}

// start returns a load of a server with that handler.
func start(t *testing.T, c Config, handler http.HandlerFunc) *Load {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c.Address = netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://"))
	if c.Script == nil {
		c.Script = numbered(1000)
	}
	l := New(c)
	t.Cleanup(l.Close)
	return l
}

// Whatever way a load asks, every request is counted once: by its status, and with its latency.
func TestLoadCountsEveryRequestOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"one connection": {Connections: 1},
		"connections":    {Connections: 9, Clients: 3},
		"rate":           {Connections: 9, Rate: 2000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, missing atomic.Int64
			var mu sync.Mutex
			from := map[string]bool{}
			c.Verify = verifyEcho
			l := start(t, c, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				from[strings.Split(r.RemoteAddr, ":")[0]] = true
				mu.Unlock()
				if asked.Add(1); number(r)%7 == 0 {
					missing.Add(1)
				}
				echo(w, r)
			})
			counts := NewCounts()
			for counts.Verified == 0 || counts.Statuses[404] == 0 {
				counts.Merge(l.Phase(t.Context(), 50*time.Millisecond))
			}
			if int64(counts.Answered()) != asked.Load() || int64(counts.Statuses[404]) != missing.Load() || len(counts.Errors) > 0 || counts.Wrong != nil {
				t.Errorf("%d responses, %d of them 404, %v, %v; the server sent %d and %d", counts.Answered(), counts.Statuses[404], counts.Errors, counts.Wrong, asked.Load(), missing.Load())
			}
			if counts.Latency.Count() != asked.Load() || counts.OK()+counts.Failed() != counts.Sent() || counts.Failed() != counts.Statuses[404] {
				t.Errorf("%d latencies, %d ok, %d failed, %d sent of %d", counts.Latency.Count(), counts.OK(), counts.Failed(), counts.Sent(), asked.Load())
			}
			if len(from) != max(1, c.Clients) || c.Clients > 0 && !from["127.0.0.3"] {
				t.Errorf("requests came from %v", from)
			}
		})
	}
}

// A server that stalls, breaks, refuses or does not keep up gives figures. At a rate the number of
// requests that were due depends on the clock alone, and all of them are accounted for.
func TestLoadAccountsForWhatWasDue(t *testing.T) {
	t.Parallel()
	const length = 200 * time.Millisecond
	for name, test := range map[string]struct {
		rate    float64
		handler func(n int64, w http.ResponseWriter, r *http.Request)
		want    string // what must have happened to some requests
	}{
		"refuses":          {2000, func(_ int64, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "503"},
		"breaks":           {2000, func(n int64, w http.ResponseWriter, r *http.Request) { breakSome(n, w, r) }, errClosed.Error()},
		"breaks always":    {2000, func(int64, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, errClosed.Error()},
		"closes":           {2000, closeSome, "200"},
		"stalls":           {2000, func(_ int64, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, errAtEnd.Error()},
		"does not keep up": {1e7, func(_ int64, w http.ResponseWriter, r *http.Request) { echo(w, r) }, "unsent"},
		"in chunks": {2000, func(_ int64, w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, r.URL.Path)
		}, "200"},
		"speaks another protocol": {2000, func(_ int64, w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, err = io.WriteString(conn, "220 mail.example\r\n\r\n")
				err = errors.Join(err, conn.Close())
			}
			ledgertest.ErrorIs(t, err, nil, "the response")
		}, errNotHTTP.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			l := start(t, Config{Connections: 4, Rate: test.rate}, func(w http.ResponseWriter, r *http.Request) { test.handler(asked.Add(1), w, r) })
			c := l.Phase(t.Context(), length)
			if want := int(test.rate * length.Seconds()); c.Due() != want || c.OK()+c.Failed()+c.Unsent != want {
				t.Errorf("%d due, %d ok, %d failed, %d unsent, want %d", c.Due(), c.OK(), c.Failed(), c.Unsent, want)
			}
			ledgertest.Equal(t, int64(c.Sent()), asked.Load(), "requests sent, and those that the server got")
			status, _ := strconv.Atoi(test.want)
			if c.Errors[test.want] == 0 && c.Statuses[status] == 0 && (test.want != "unsent" || c.Unsent == 0) {
				t.Errorf("nothing is counted as %q, but %v", test.want, c.Errors)
			}
			if name == "closes" && len(c.Errors) > 0 {
				t.Errorf("connections that were closed after the response lost %v", c.Errors)
			}
			if c.Took > length+grace+time.Second || name != "stalls" && c.Took > grace {
				t.Errorf("it took %v", c.Took)
			}
		})
	}
}

func breakSome(n int64, w http.ResponseWriter, r *http.Request) {
	if n%10 == 0 {
		panic(http.ErrAbortHandler)
	}
	echo(w, r)
}

func closeSome(n int64, w http.ResponseWriter, r *http.Request) {
	if n%7 == 0 {
		w.Header().Set("Connection", "close")
	}
	echo(w, r)
}

// A connection that the server closes without a word, after a response, loses no request that is due later.
func TestClosedConnectionsAreOpenedAgain(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 1)
	l := start(t, Config{Connections: 1, Rate: 1}, func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			err = errors.Join(out.Flush(), conn.Close())
		}
		ledgertest.ErrorIs(t, err, nil, "the response")
		closed <- struct{}{}
	})
	for range 50 {
		c := l.Phase(t.Context(), time.Millisecond) // one request
		if c.OK() != 1 || c.Sent() != 1 {
			t.Fatalf("%d of %d answered, %v", c.OK(), c.Sent(), c.Errors)
		}
		<-closed
	}
}

// A server that stalls is late for all that was due meanwhile, not for one request alone.
func TestLatencyCountsFromWhenARequestWasDue(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	var asked atomic.Int64
	l := start(t, Config{Connections: 1, Rate: 1000}, func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(stall)
		}
	})
	c := l.Phase(t.Context(), 2*stall)
	if got := c.Latency.Quantile(0.75); got < stall/4 {
		t.Errorf("three quarters took %v or less, want at least %v", got, stall/4)
	}
	if c.Latency.Quantile(1) < stall-time.Millisecond {
		t.Errorf("the longest took %v, want at least %v", c.Latency.Quantile(1), stall)
	}
}

func TestLoadStopsAtTheFirst429(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 20 {
			w.Header().Set("Retry-After", "37")
			w.WriteHeader(429)
		}
	}
	l := start(t, Config{Connections: 1, Rate: 1000, StopAt429: true}, handler)
	c := l.Phase(t.Context(), time.Minute)
	if c.Statuses[200] != 20 || c.Statuses[429] != 1 || c.RetryAfter != "37" || c.Took > 30*time.Second {
		t.Errorf("%d ok, %d refused until %q after %v", c.Statuses[200], c.Statuses[429], c.RetryAfter, c.Took)
	}
}

func TestWrongResponsesAreNoticed(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Connections: 1, Verify: verifyEcho, Script: numbered(1)}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "/17")
	})
	if c := l.Phase(t.Context(), 20*time.Millisecond); c.Wrong == nil || c.Verified != c.Answered() {
		t.Errorf("%d of %d verified: %v", c.Verified, c.Answered(), c.Wrong)
	}
}

// What is taken while a phase runs and what the phase returns are everything together. The end of the
// context ends the phase.
func TestTakenCountsAndTheRestAreEverything(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	l := start(t, Config{Connections: 3, Rate: 2000}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		echo(w, r)
	})
	ctx, stop := context.WithCancel(t.Context())
	rest := make(chan *Counts)
	go func() {
		rest <- l.Phase(ctx, time.Hour)
	}()
	all := NewCounts()
	for parts := 0; parts < 5; {
		if more := l.Take(); more.Answered() > 0 {
			parts++
			all.Merge(more)
		}
	}
	stop()
	all.Merge(<-rest)
	if int64(all.Answered()) != asked.Load() || all.Latency.Count() != asked.Load() || len(all.Errors) > 0 {
		t.Errorf("%d responses, %d latencies, %v; the server sent %d", all.Answered(), all.Latency.Count(), all.Errors, asked.Load())
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	address := netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://"))
	server.Close()
	for _, rate := range []float64{0, 1000} {
		l := New(Config{Address: address, Connections: 3, Script: numbered(10), Rate: rate})
		defer l.Close()
		c := l.Phase(t.Context(), 250*time.Millisecond)
		if n := c.Errors["cannot connect: connection refused"]; n == 0 || n != c.Sent() || n > 100 {
			t.Errorf("rate %v: %v", rate, c.Errors)
		}
	}
}
