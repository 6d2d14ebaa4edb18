package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	"go.uber.org/goleak"

	"ledgerd/bench/peer"
)

// asks is a script that asks for /0, /1 and so on.
func asks(count int, fresh bool) *script {
	next := uint32(0)
	return newScript(count, func(*rand.Rand) restAsk { next++; return restAsk{index: next - 1} }, func(dst []byte, a restAsk) []byte {
		return peer.Get(dst, "127.0.0.1:1", fmt.Sprintf("/%d", a.index), peer.AnyCoding, fresh)
	})
}

// echo answers what was asked for, and 404 for each seventh; some answers are longer than what
// is read at once.
func echo(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Path[1:])
	body := r.URL.Path
	if n%50 == 0 {
		body += strings.Repeat("x", 2*loadRoom)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if n%7 == 0 {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, body)
}

// checkEcho sees that an answer is that of its request.
func checkEcho(a restAsk, status int, _, body []byte) error {
	if want := fmt.Sprintf("/%d", a.index); !strings.HasPrefix(string(body), want) || len(body) > len(want) && body[len(want)] != 'x' || (status == 404) != (a.index%7 == 0) {
		return fmt.Errorf("%s was answered %d %.20q", want, status, body)
	}
	return nil
}

func loadOf(t *testing.T, c loadConfig, handler http.HandlerFunc) *load {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c.Address = netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://"))
	c.Frame = frameLast
	l, err := newLoad(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

// Whatever way it is asked, every request is answered within its phase, once, and counted.
func TestLoadCountsWhatIsAnswered(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, c := range map[string]loadConfig{
		"one connection":  {Connections: 1},
		"connections":     {Connections: 9, Locals: []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}},
		"pipelined":       {Connections: 3, Depth: 8},
		"each of its own": {Connections: 5, Fresh: true},
		"rate":            {Connections: 9, Rate: 2000},
		"pipelined rate":  {Connections: 2, Depth: 8, Rate: 2000},
		"own, at a rate":  {Connections: 9, Rate: 500, Fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked, missing atomic.Int64
			var mu sync.Mutex
			from := map[string]bool{}
			c.Script, c.Check = asks(1000, c.Fresh), checkEcho
			l := loadOf(t, c, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				from[strings.Split(r.RemoteAddr, ":")[0]] = true
				mu.Unlock()
				if asked.Add(1); r.URL.Path == "/0" || len(r.URL.Path) > 1 && mustAtoi(r.URL.Path[1:])%7 == 0 {
					missing.Add(1)
				}
				echo(w, r)
			})
			for range 2 {
				asked.Store(0)
				missing.Store(0)
				counts := &loadCounts{Latency: NewHistogram()}
				for counts.Checked == 0 || counts.Statuses[404] == 0 {
					more, err := l.phase(t.Context(), 50*time.Millisecond)
					if err != nil {
						t.Fatal(err)
					}
					counts.merge(more)
				}
				if int64(counts.answered()) != asked.Load() || int64(counts.Statuses[404]) != missing.Load() || counts.Failed > 0 {
					t.Errorf("%d answers, %d of them 404, %d failed; the server answered %d and %d", counts.answered(), counts.Statuses[404], counts.Failed, asked.Load(), missing.Load())
				}
				if counts.Latency.Count() != asked.Load() {
					t.Errorf("%d latencies of %d answers", counts.Latency.Count(), asked.Load())
				}
			}
			if len(from) != max(1, len(c.Locals)) || len(c.Locals) > 0 && !from["127.0.0.3"] {
				t.Errorf("requests came from %v", from)
			}
		})
	}
}

func mustAtoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func TestLoadNoticesAWrongAnswer(t *testing.T) {
	l := loadOf(t, loadConfig{Connections: 1, Script: asks(1000, false), Check: checkEcho}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "/17")
	})
	if _, err := l.phase(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "an answer is wrong") {
		t.Errorf("err = %v", err)
	}
}

// A server that stalls is late for all that was due meanwhile, not for one request alone.
func TestLoadCountsLatencyFromWhenARequestWasDue(t *testing.T) {
	const stall = 200 * time.Millisecond
	var asked atomic.Int64
	l := loadOf(t, loadConfig{Connections: 1, Rate: 1000, Script: asks(1000, false)}, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(stall)
		}
	})
	counts, err := l.phase(t.Context(), stall)
	if err != nil {
		t.Fatal(err)
	}
	if n := counts.answered(); n != 200 { // all that were due, though the first took all the time
		t.Errorf("%d were answered, want 200", n)
	}
	if got := counts.Latency.Quantile(0.5); got < stall/3 {
		t.Errorf("half took %v or less, want at least %v", got, stall/3)
	}
	if counts.Late < 100 {
		t.Errorf("%d were late", counts.Late)
	}
}

// What a server has no time for is counted: it neither fails the phase nor is left out.
func TestLoadCountsWhatIsNeverSent(t *testing.T) {
	t.Parallel()
	l := loadOf(t, loadConfig{Connections: 2, Rate: 1e7, Script: asks(1000, false)}, echo)
	counts, err := l.phase(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if counts.answered() == 0 || counts.Unsent == 0 || counts.Failed > 0 || counts.answered()+counts.Unsent != 1e6 {
		t.Errorf("of 1,000,000 that were due %d were answered, %d never sent, and %d failed", counts.answered(), counts.Unsent, counts.Failed)
	}
}

// Who asks at a rate is woken again and again, also when there is nothing to read.
func TestLoadIsWokenAgainAndAgain(t *testing.T) {
	l, err := newLoadLoop(loadConfig{Connections: 1, Depth: 1, Rate: 1000}, 0)
	if err == nil {
		defer l.close()
		err = l.tick()
	}
	for range 20 { // some of which a signal may end
		if err == nil {
			err = l.wait()
		}
	}
	if err != nil || l.ticks < 10 {
		t.Errorf("woken %d times, %v", l.ticks, err)
	}
}

func TestLoadGoesOnAfterABrokenConnection(t *testing.T) {
	for name, c := range map[string]loadConfig{"closed": {Connections: 2}, "open": {Connections: 2, Rate: 2000}} {
		var asked atomic.Int64
		c.Script = asks(1000, false)
		l := loadOf(t, c, func(w http.ResponseWriter, r *http.Request) {
			switch n := asked.Add(1); {
			case n == 10:
				panic(http.ErrAbortHandler)
			case n%7 == 0:
				w.Header().Set("Connection", "close") // which loses nothing
			}
			echo(w, r)
		})
		answered, failed := 0, 0
		for answered < 100 {
			counts, err := l.phase(t.Context(), 50*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			answered += counts.answered()
			failed += counts.Failed
		}
		if failed != 1 || int64(answered+failed) != asked.Load() {
			t.Errorf("%s: %d answered and %d failed of %d", name, answered, failed, asked.Load())
		}
	}
}

// A load that runs is asked for its counts time and again; nothing is counted twice or lost.
func TestLoadThatRunsHandsOverWhatItCounts(t *testing.T) {
	var asked atomic.Int64
	l := loadOf(t, loadConfig{Connections: 3, Rate: 2000, Script: asks(1000, false)}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		echo(w, r)
	})
	for range 2 { // it may run again
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		asked.Store(0) // nothing is asked between two runs
		go func() { ran <- l.run(ctx) }()
		all := newLoadCounts()
		for parts := 0; parts < 5; {
			if more := l.take(); more.answered() > 0 {
				parts++
				all.merge(more)
			}
		}
		stop()
		if err := <-ran; err != nil {
			t.Fatal(err)
		}
		all.merge(l.take())
		if int64(all.answered()) != asked.Load() || all.Latency.Count() != asked.Load() || all.Failed > 0 {
			t.Errorf("%d answers, %d latencies, %d failed; the server answered %d", all.answered(), all.Latency.Count(), all.Failed, asked.Load())
		}
	}
}

func TestLoadGivesUpAnAnswerThatDoesNotCome(t *testing.T) {
	l := loadOf(t, loadConfig{Connections: 1, Rate: 100, Script: asks(10, false)}, echo)
	if _, err := l.phase(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	loop := l.loops[0]
	c := &loop.conns[0]
	c.count, c.since, loop.waiting = 1, loop.now-int64(2*loadPatience), 1 // as if it had been asked long ago
	loop.kept = loop.now - int64(2*loadKeep)
	if err := loop.ticked(); err != nil {
		t.Fatal(err)
	}
	if counts := l.take(); counts.Failed != 1 || !errors.Is(counts.Why, errOverdue) || c.fd >= 0 {
		t.Errorf("%d failed, because of %v; socket %d", counts.Failed, counts.Why, c.fd)
	}
}

func TestLoadEndsWithItsContextAndWithItsServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := loadOf(t, loadConfig{Connections: 2, Script: asks(10, false)}, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		echo(w, r)
	})
	if _, err := l.phase(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	server := httptest.NewServer(nil)
	address := netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://"))
	server.Close()
	if _, err := newLoad(t.Context(), loadConfig{Address: address, Connections: 3, Script: asks(10, false), Frame: frameHTTP}); err == nil {
		t.Error("nobody listens, and there is no error")
	}
}

func TestFramesEndWhereAnswersEnd(t *testing.T) {
	for text, want := range map[string]answerFrame{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello":         {44, 5, 200, false},
		"HTTP/1.1 404 X\r\ncontent-length:12\r\n\r\n":                       {37, 12, 404, false},
		"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\nHTTP":                  {38, 0, 304, false},
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n": {57, 5, 200, true},
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n":                          {},
	} {
		if got, err := frameLast([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "no\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", strings.Repeat("x", maxAnswerHeadBytes+1)} {
		if got, err := frameLast([]byte(text)); err == nil {
			t.Errorf("%.40q: %+v", text, got)
		}
	}
	for text, want := range map[string]answerFrame{"$5\r\nhello\r\n": {4, 7, 200, false}, "$-1\r\n": {5, 0, 404, false}, "$5": {}} {
		if got, err := frameRedis([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	if got, err := frameRedis([]byte("-ERR\r\n")); err == nil {
		t.Errorf("an error: %+v", got)
	}
}
