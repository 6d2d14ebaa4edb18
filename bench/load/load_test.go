package load

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
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

	"ledgerd/bench/dial"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbered is a script that asks for /0, /1 and so on.
func numbered(count int) Script {
	return NewScript(count, func(i int) []byte {
		return Get("127.0.0.1:1", fmt.Sprintf("/%d", i), nil)
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
func verifyEcho(_, i int, r *fasthttp.Response) error {
	want := fmt.Sprintf("/%d", i)
	if strings.TrimRight(string(r.Body()), "x") != want || (r.StatusCode() == 404) != (i%7 == 0) {
		return fmt.Errorf("%s was answered %d %.20q", want, r.StatusCode(), r.Body())
	}
	return nil
}

// start returns a load of a server with that handler.
func start(t *testing.T, c Config, handler http.HandlerFunc) *Load {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	if server.EnableHTTP2 = c.HTTP2; c.HTTP2 {
		server.StartTLS()
		c.Dial.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
		c.Dial.TLS.ServerName = "example.com" // which its certificate names
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	c.Address = netip.MustParseAddrPort(server.Listener.Addr().String())
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
		"connections":    {Connections: 9, Dial: dial.Dialer{From: dial.Loopback(3)}},
		"rate":           {Connections: 9},
		"HTTP/2":         {Connections: 9, HTTP2: true, Dial: dial.Dialer{From: dial.Loopback(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, missing, verified atomic.Int64
			var mu sync.Mutex
			from := map[string]bool{}
			c.VerifyEvery = 256
			c.Verify = func(conn, request int, r *fasthttp.Response) error {
				verified.Add(1)
				return verifyEcho(conn, request, r)
			}
			pace := Pace{Length: 50 * time.Millisecond}
			if name == "rate" {
				pace.Rate = 2000
			}
			l := start(t, c, func(w http.ResponseWriter, r *http.Request) {
				if (r.ProtoMajor == 2) != c.HTTP2 {
					t.Errorf("a request is of %s", r.Proto)
				}
				mu.Lock()
				from[strings.Split(r.RemoteAddr, ":")[0]] = true
				mu.Unlock()
				if asked.Add(1); number(r)%7 == 0 {
					missing.Add(1)
				}
				echo(w, r)
			})
			addresses := func() int {
				mu.Lock()
				defer mu.Unlock()
				return len(from)
			}
			counts := NewCounts()
			for verified.Load() == 0 || counts.Statuses[404] == 0 || addresses() < max(1, len(c.Dial.From)) { // on a busy machine one connection may take them all
				counts.Merge(l.Phase(t.Context(), pace))
			}
			if int64(counts.Answered()) != asked.Load() || int64(counts.Statuses[404]) != missing.Load() || len(counts.Errors)+len(counts.Wrong) > 0 {
				t.Errorf("%d responses, %d of them 404, %v, %v; the server sent %d and %d", counts.Answered(), counts.Statuses[404], counts.Errors, counts.Wrong, asked.Load(), missing.Load())
			}
			if counts.Latency.Count() != asked.Load() || counts.OK()+counts.Failed() != counts.Sent() || counts.Failed() != counts.Statuses[404] {
				t.Errorf("%d latencies, %d ok, %d failed, %d sent of %d", counts.Latency.Count(), counts.OK(), counts.Failed(), counts.Sent(), asked.Load())
			}
			if len(from) != max(1, len(c.Dial.From)) || len(c.Dial.From) > 0 && !from["127.0.0.3"] {
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
	const broken = "the server broke the response off: INTERNAL_ERROR"
	const tooLong = "the body of the response is longer than 1 MiB"
	for name, test := range map[string]struct {
		rate    float64
		handler func(n int64, w http.ResponseWriter, r *http.Request)
		want    string // what must have happened to some requests
		http2   string // and over HTTP/2; "": it has no such thing
	}{
		"refuses":          {2000, func(_ int64, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "503", "503"},
		"breaks":           {2000, breakSome, errClosed.Error(), broken},
		"breaks always":    {2000, func(int64, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, errClosed.Error(), broken},
		"closes":           {2000, closeSome, "200", "200"},
		"stalls":           {2000, func(_ int64, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, errAtEnd.Error(), errAtEnd.Error()},
		"does not keep up": {1e7, func(_ int64, w http.ResponseWriter, r *http.Request) { echo(w, r) }, "unsent", "unsent"},
		"in chunks": {2000, func(_ int64, w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, r.URL.Path)
		}, "200", "200"},
		"speaks another protocol": {2000, func(_ int64, w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, err = io.WriteString(conn, "220 mail.example\r\n\r\n")
				err = errors.Join(err, conn.Close())
			}
			ledgertest.ErrorIs(t, err, nil, "the response")
		}, errNotHTTP.Error(), ""},
		"announces more than there is memory": {2000, func(_ int64, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(math.MaxInt))
			_ = http.NewResponseController(w).Flush()
		}, tooLong, io.ErrUnexpectedEOF.Error()},
		"sends without an end": {2000, func(_ int64, w http.ResponseWriter, _ *http.Request) {
			for piece := make([]byte, 64<<10); ; {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}, tooLong, tooLong},
	} {
		for protocol, want := range map[string]string{"HTTP/1.1": test.want, "HTTP/2": test.http2} {
			if want == "" {
				continue
			}
			t.Run(name+" over "+protocol, func(t *testing.T) {
				t.Parallel()
				ask := func() (happened bool) {
					var asked atomic.Int64
					l := start(t, Config{Connections: 4, HTTP2: protocol == "HTTP/2", MostBytes: 1 << 20}, func(w http.ResponseWriter, r *http.Request) { test.handler(asked.Add(1), w, r) })
					c := l.Phase(t.Context(), Pace{Length: length, Rate: test.rate})
					if want := int(test.rate * length.Seconds()); c.Due() != want || c.OK()+c.Failed()+c.Unsent != want {
						t.Errorf("%d due, %d ok, %d failed, %d unsent, want %d", c.Due(), c.OK(), c.Failed(), c.Unsent, want)
					}
					// A request on a connection that the server just broke may not have reached it, and failed.
					if lost := int64(c.Sent()) - asked.Load(); lost < 0 || lost > int64(c.Failed()) {
						t.Errorf("%d requests sent, %d failed, and the server got %d", c.Sent(), c.Failed(), asked.Load())
					}
					status, _ := strconv.Atoi(want)
					happened = c.Errors[want] > 0 || c.Statuses[status] > 0 || want == "unsent" && c.Unsent > 0
					delete(c.Errors, errAtEnd.Error()) // the phase is short, and the machine may be busy
					if name == "closes" && len(c.Errors) > 0 {
						t.Errorf("connections that were closed after the response lost %v", c.Errors)
					}
					if c.Took > time.Minute { // the machine may be busy
						t.Errorf("it took %v", c.Took)
					}
					return happened
				}
				for began := time.Now(); !ask(); { // on a busy machine few requests are sent in so short a time
					if time.Since(began) > time.Minute {
						t.Fatalf("nothing is counted as %q", want)
					}
				}
			})
		}
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
	l := start(t, Config{Connections: 1}, func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			err = errors.Join(out.Flush(), conn.Close())
		}
		ledgertest.ErrorIs(t, err, nil, "the response")
		closed <- struct{}{}
	})
	for range 50 {
		c := l.Phase(t.Context(), Pace{Length: time.Millisecond, Rate: 1}) // one request
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
	l := start(t, Config{Connections: 1}, func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(stall)
		}
	})
	c := l.Phase(t.Context(), Pace{Length: 2 * stall, Rate: 1000})
	if got := c.Latency.Quantile(0.75); got < stall/4 {
		t.Errorf("three quarters took %v or less, want at least %v", got, stall/4)
	}
	if c.Latency.Quantile(1) < stall-time.Millisecond {
		t.Errorf("the longest took %v, want at least %v", c.Latency.Quantile(1), stall)
	}
}

// What is taken while a phase runs and what the phase returns are everything together. The end of the
// context ends the phase.
func TestTakenCountsAndTheRestAreEverything(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	l := start(t, Config{Connections: 3}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		echo(w, r)
	})
	ctx, stop := context.WithCancel(t.Context())
	rest := make(chan *Counts)
	go func() {
		rest <- l.Phase(ctx, Pace{Length: time.Hour, Rate: 2000})
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

// What was not due yet when a phase was interrupted is not what the server did not keep up with. (A try may find the machine busy.)
func TestInterruptedLoadLeavesNothingUnsentThatWasNotDue(t *testing.T) {
	t.Parallel()
	unsent := 1
	for try := 0; try < 50 && unsent > 0; try++ {
		ctx, stop := context.WithCancel(t.Context())
		l := start(t, Config{Connections: 4}, func(http.ResponseWriter, *http.Request) { stop() })
		unsent = l.Phase(ctx, Pace{Length: time.Minute, Rate: 101}).Unsent
	}
	ledgertest.Equal(t, unsent, 0, "requests that were due and not sent")
}

// A closed loop ends with its last request, also where connections are still to begin.
func TestRampEndsWithTheLastRequest(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Connections: 4}, echo)
	c := l.Phase(t.Context(), Pace{Length: time.Minute, Ramp: 40 * time.Second, Requests: 3})
	if c.Sent() != 3 || c.Took > 9*time.Second { // the second connection begins after ten
		t.Errorf("%d requests sent in %v", c.Sent(), c.Took)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	address := netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://"))
	server.Close()
	for _, rate := range []float64{0, 1000} {
		l := New(Config{Address: address, Connections: 3, Script: numbered(10)})
		defer l.Close()
		c := l.Phase(t.Context(), Pace{Length: 250 * time.Millisecond, Rate: rate})
		if n := c.Errors["cannot connect: connection refused"]; n == 0 || c.Failed() != c.Sent() || n > 100 { // a try at the end may time out
			t.Errorf("rate %v: %v", rate, c.Errors)
		}
	}
}

// Every server that speaks HTTP is sent the fields of a common client, and no others.
func TestRequestsAreThoseOfCommonClients(t *testing.T) {
	const want = "GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: python-requests/2.32.3\r\n" +
		"Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n\r\n"
	ledgertest.Equal(t, string(Get("127.0.0.1:8080", "/api/status", nil)), want, "the request")
}

// Whatever the arrivals, the rate is what was asked for; while it rises, requests are as many as the area below it.
func TestScheduleKeepsTheRate(t *testing.T) {
	for name, tt := range map[string]struct {
		pace        Pace
		first, half int // requests of the first second, and of half of it
		off         int // at most
	}{
		"even":              {Pace{Rate: 1000}, 1000, 500, 0},
		"below one":         {Pace{Rate: 0.5}, 1, 1, 0},
		"poisson":           {Pace{Rate: 10_000, Poisson: true}, 10_000, 5000, 300},
		"ramp":              {Pace{Rate: 1000, Ramp: time.Second}, 500, 125, 1},
		"ramp, then even":   {Pace{Rate: 1000, Ramp: 500 * time.Millisecond}, 750, 250, 1},
		"poisson on a ramp": {Pace{Rate: 10_000, Poisson: true, Ramp: time.Second}, 5000, 1250, 300},
		"so many":           {Pace{Rate: 1000, Requests: 600}, 600, 500, 0},
	} {
		for length, want := range map[time.Duration]int{time.Second: tt.first, time.Second / 2: tt.half} {
			s := schedule{Pace: tt.pace, random: rand.New(rand.NewPCG(1, 2))}
			gaps, last := map[time.Duration]bool{}, time.Duration(0)
			for ; !s.ends(length); s.step() {
				gaps[s.due()-last], last = true, s.due()
			}
			if off := s.n - want; max(off, -off) > tt.off || tt.pace.Poisson && len(gaps) < s.n/2 {
				t.Errorf("%s: %d requests with %d gaps in %v, want %d", name, s.n, len(gaps), length, want)
			}
		}
	}
}

// A search ends at the highest rate that meets, however the server does.
func TestSearchEndsAtTheHighestRateThatMeets(t *testing.T) {
	for _, limit := range []float64{0, 0.5, 1, 37, 999, 1000, 54_321, 1e9} {
		tried := 0
		best, err := Search(1000, func(rate float64) (bool, error) {
			tried++
			return rate <= limit, nil
		})
		wrong := best > limit || best*1.06 < limit && limit >= 2 && best < MostRate/2
		if err != nil || wrong || tried > 40 {
			t.Errorf("limit %v: %v after %d tries, %v", limit, best, tried, err)
		}
	}
	failure := errors.New("a failure")
	_, err := Search(1000, func(float64) (bool, error) { return true, failure })
	ledgertest.ErrorIs(t, err, failure, "where a try fails")
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestObjectives holds objectives against counts: what fails and what is not sent is never answered in time; limits are of what was due.
func TestObjectives(t *testing.T) {
	ledgertest.Scenes(t, "testdata/*.txt", "# ", *update, func(t *testing.T, scene string) string {
		scene, _, _ = strings.Cut(scene, "\n")
		c, slo, ok, failed := NewCounts(), "", 0, 0
		_, _ = fmt.Sscanf(scene, "%q of %d ok, %d failed, %d gone, %d unsent", &slo, &ok, &failed, &c.Gone, &c.Unsent) // there may be none
		c.Statuses = map[int]int{http.StatusOK: ok, http.StatusNotFound: c.Gone}
		c.Errors["broken"] = failed
		for i := range ok + c.Gone {
			c.Latency.Record(time.Duration(i+1) * time.Millisecond)
		}
		told := []string{"all is met"}
		if s, err := ParseSLO(slo); err != nil {
			told = []string{err.Error()}
		} else if missed := s.Missed(c); missed != nil {
			told = missed
		}
		return "# " + scene + "\n\t" + strings.Join(told, "\n\t") + "\n\n"
	})
}
