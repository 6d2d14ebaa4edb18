package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/proc"
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
	r := begin(t, args...).reach(t)
	for {
		if status, _ := get(t, r.ops+"/readyz"); status == http.StatusOK {
			return r
		}
		select {
		case code := <-r.code:
			t.Fatalf("ledgerd %q ended with %d before it was ready:\n%s", args, code, r.errs)
		case <-time.After(time.Millisecond):
		}
	}
}

// stop ends the program as SIGTERM does and returns the exit code.
func (r *running) stop() int { return r.stopWithin(patience) }

// stopWithin returns -1 if that takes longer.
func (r *running) stopWithin(longest time.Duration) int {
	r.cancel()
	select {
	case code := <-r.code:
		return code
	case <-time.After(longest):
		return -1
	}
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func get(t testing.TB, url string) (int, []byte) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestSimulatorAnswersFromTheBannersWordsAlone(t *testing.T) {
	r := start(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=500,slot_time=10ms")
	keys := regexp.MustCompile(`curl (\S+/account/\S+)`).FindAllStringSubmatch(r.out.String(), -1)
	if len(keys) != 3 {
		t.Fatalf("the banner shows %d keys, want 3:\n%s", len(keys), r.out)
	}
	for _, m := range keys {
		if status, body := get(t, m[1]); status != http.StatusOK {
			t.Errorf("GET %s: %d %s", m[1], status, body)
		}
	}
	for _, path := range []string{"/health", "/status", "/metrics", "/blocks/latest", "/transactions/recent", "/openapi.json"} {
		if status, body := get(t, r.base+path); status != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, status, body)
		}
	}
	if code := r.stop(); code != exitOK {
		t.Errorf("exit code %d after a clean stop, want 0:\n%s", code, r.errs)
	}
}

func TestStartsThatAreRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	held, dir := t.TempDir(), filepath.Join(t.TempDir(), "data")
	start(t, "--data-dir", held, "--source", "sim:seed=1,accounts=100,slots=3,slot_time=0").stop()
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"another ledger":      {[]string{"--data-dir", held, "--source", "sim:seed=2,accounts=100"}, exitFailure, "--data-dir"},
		"a port in use":       {[]string{"--data-dir", dir, "--listen", taken.Addr().String()}, exitUsage, "--listen"},
		"an operators' port":  {[]string{"--data-dir", dir, "--ops-listen", taken.Addr().String()}, exitUsage, "--ops-listen"},
		"input of no meaning": {[]string{"--data-dir", t.TempDir(), "--source", "file:" + writeFile(t, "events.ndjson", "{\"type\":\"riddle\"}\n")}, exitFailure, "line 1: "},
	} {
		r := begin(t, tt.args...)
		if code := <-r.code; code != tt.code || !strings.Contains(r.errs.String(), tt.want) {
			t.Errorf("%s: exit code %d, printed %q; want %d and %q", name, code, r.errs, tt.code, tt.want)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
}
