package bench

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// polled runs a poller against a handler until enough answers came.
func polled(t *testing.T, c pollConfig, handler http.HandlerFunc, enough func(seen *pollCounts) bool) pollCounts {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	c.Address = strings.TrimPrefix(server.URL, "http://")
	p, err := newPoller(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.run(ctx)
	}()
	for {
		p.mu.Lock()
		done := enough(&p.counts)
		p.mu.Unlock()
		if done {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	<-over
	return p.take()
}

func TestPollerCountsAnswersByStatus(t *testing.T) {
	defer goleak.VerifyNone(t)
	var asked [2]atomic.Int64
	config := pollConfig{Connections: 3, Rate: 2000, Paths: []string{"/a", "/b"}}
	config.Locals = []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}
	var strangers atomic.Int64
	counts := polled(t, config, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.RemoteAddr, "127.0.0.2:") && !strings.HasPrefix(r.RemoteAddr, "127.0.0.3:") {
			strangers.Add(1)
		}
		if r.URL.Path == "/a" {
			asked[0].Add(1)
			w.Header().Set("Content-Length", "9000") // more than the poller's buffer holds
			io.WriteString(w, strings.Repeat("x", 9000))
			return
		}
		asked[1].Add(1)
		w.Header().Set("Content-Length", "7")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "nothing")
	}, func(seen *pollCounts) bool { return seen.answered() >= 100 })
	if int64(counts.Statuses[200]) != asked[0].Load() || int64(counts.Statuses[404]) != asked[1].Load() || counts.Failed != 0 {
		t.Errorf("counted %v and %d failed, the server answered %d and %d", counts.Statuses, counts.Failed, asked[0].Load(), asked[1].Load())
	}
	if asked[0].Load() == 0 || asked[1].Load() == 0 {
		t.Error("a path was never asked")
	}
	if counts.Latency.Count() != int64(counts.answered()) {
		t.Errorf("%d latencies of %d answers", counts.Latency.Count(), counts.answered())
	}
	if strangers.Load() != 0 {
		t.Errorf("%d requests came from another address", strangers.Load())
	}
}

// A server that stalls is late for all that was due meanwhile, not for one request alone.
func TestPollerCountsLatencyFromWhenARequestWasDue(t *testing.T) {
	const stall = 100 * time.Millisecond
	var asked atomic.Int64
	counts := polled(t, pollConfig{Connections: 1, Rate: 1000, Paths: []string{"/"}}, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(stall)
		}
	}, func(seen *pollCounts) bool { return seen.answered() >= 100 })
	// Of the first hundred, due a millisecond apart, half were due in the first half of the stall.
	late := 1 - 45/float64(counts.answered())
	if got := counts.Latency.Quantile(late); got < stall/2 {
		t.Errorf("quantile %v of %d is %v, want at least %v", late, counts.answered(), got, stall/2)
	}
	if counts.Late == 0 {
		t.Error("no request was late")
	}
}

func TestPollerGoesOnAfterABrokenConnection(t *testing.T) {
	defer goleak.VerifyNone(t)
	var asked atomic.Int64
	counts := polled(t, pollConfig{Connections: 2, Rate: 2000, Paths: []string{"/"}}, func(w http.ResponseWriter, _ *http.Request) {
		switch n := asked.Add(1); {
		case n == 10:
			panic(http.ErrAbortHandler)
		case n%7 == 0:
			w.Header().Set("Connection", "close")
		}
	}, func(seen *pollCounts) bool { return seen.answered() >= 100 && seen.Failed > 0 })
	if counts.Failed != 1 || int64(counts.answered()+counts.Failed) != asked.Load() {
		t.Errorf("%d answered and %d failed of %d", counts.answered(), counts.Failed, asked.Load())
	}
}

func TestPollerSaysThatNobodyListens(t *testing.T) {
	server := httptest.NewServer(nil)
	address := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	_, err := newPoller(t.Context(), pollConfig{Address: address, Connections: 1, Rate: 1, Paths: []string{"/"}})
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}
