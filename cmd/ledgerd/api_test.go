package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger/ledgertest"
)

// running is a node started by a test.
type running struct {
	base, ops string
	out, errs *transcript
	cancel    context.CancelFunc
	code      chan int
}

// begin runs `ledgerd serve` on free ports until the test ends.
func begin(t testing.TB, args ...string) *running {
	t.Helper()
	return perform(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--rate-limit-minute", "0", "--rate-limit-hour", "0"}, args...)...)
}

// perform runs any command of ledgerd until the test ends.
func perform(t testing.TB, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{out: newTranscript(), errs: newTranscript(), cancel: cancel, code: make(chan int, 1)}
	go func() {
		defer close(r.code)
		r.code <- run(ctx, args, &streams{r.out, r.errs})
		r.out.End()
		r.errs.End()
	}()
	t.Cleanup(func() {
		cancel()
		<-r.code // or closed, after stop
		if t.Failed() {
			t.Logf("ledgerd %q:\n%s", args, r.errs)
		}
	})
	return r
}

// reach waits until a node, which need not be ready, tells its addresses.
func (r *running) reach(t testing.TB) *running {
	t.Helper()
	m := r.out.await(t, proc.Addresses.String())
	r.base, r.ops = m[1], m[2]
	return r
}

// start runs `ledgerd serve` on free ports and waits until it is ready.
func start(t testing.TB, args ...string) *running {
	t.Helper()
	return begin(t, args...).reach(t).ready(t)
}

// ready waits until a node that was reached is ready.
func (r *running) ready(t testing.TB) *running {
	t.Helper()
	for {
		if status, _ := get(t, r.ops+"/readyz"); status == http.StatusOK {
			return r
		}
		select {
		case code := <-r.code:
			t.Fatalf("ledgerd ended with %d before it was ready:\n%s", code, r.errs)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ending returns what a node logged about the end of its input, without the time.
func (r *running) ending(t testing.TB) string {
	t.Helper()
	return r.errs.await(t, endOfInput.String())[1]
}

// stop ends the program as SIGTERM does and returns the exit code, -1 where it does not end.
func (r *running) stop() int {
	r.cancel()
	select {
	case code := <-r.code:
		return code
	case <-time.After(patience):
		return -1
	}
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func get(t testing.TB, url string) (int, []byte) {
	t.Helper()
	a, err := ask(client, url)
	must(t, err)
	return a.status, []byte(a.body)
}

// api asks one node, over kept connections. Many goroutines may use it.
type api struct {
	testing.TB
	base   string
	client *http.Client
}

// answer is a response as it was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// dial returns the interface of a running node. Its connections end with the test.
func dial(t testing.TB, r *running) *api {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &api{TB: t, base: r.base, client: &http.Client{Transport: transport}}
}

// ask asks for a URL, with header fields, and reads the answer. The body of one that upgrades the connection never ends.
func ask(client *http.Client, url string, fields ...string) (answer, error) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return answer{response.StatusCode, response.Header, ""}, nil
	}
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

// get asks for a path below the base address.
func (a *api) get(path string) answer {
	a.Helper()
	r, err := ask(a.client, a.base+path)
	if err != nil {
		a.Errorf("GET %s: %v", path, err)
	}
	return r
}

// ok is get for what must be there.
func (a *api) ok(path string) answer {
	a.Helper()
	r := a.get(path)
	ledgertest.Equal(a, r.status, http.StatusOK, "GET %s: status of %s", path, r.body)
	return r
}
