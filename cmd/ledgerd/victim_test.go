package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/proc"
)

// patience bounds every step of a test that deals with processes, on a machine as busy as may be.
// It decides only when a test fails, never whether one passes.
const patience = 2 * time.Minute

// transcript is an output that a test reads while the program writes it.
type transcript struct{ *proc.Transcript }

func newTranscript() *transcript { return &transcript{proc.NewTranscript()} }

// await waits until the output matches and returns the submatches.
func (o *transcript) await(t testing.TB, pattern string) []string {
	t.Helper()
	m, err := o.Await(t.Context(), regexp.MustCompile(pattern))
	if err != nil {
		t.Fatalf("%v:\n%s", err, o)
	}
	return m
}

// victim is a ledgerd of its own that a test ends by force.
type victim struct {
	testing.TB
	*proc.Process
	out, errs *transcript
	base, ops string // addresses, known once it listens
	client    *http.Client
}

// launch starts this test binary as `ledgerd serve` on free ports and waits for nothing.
func launch(t testing.TB, args ...string) *victim { return launchUnder(t, nil, args...) }

// launchUnder starts it under another program, which is told by the words before ledgerd's.
func launchUnder(t testing.TB, tracer []string, args ...string) *victim {
	t.Helper()
	binary, err := os.Executable()
	must(t, err)
	serve := []string{binary, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--rate-limit-minute", "0", "--rate-limit-hour", "0"}
	return launchWords(t, slices.Concat(tracer, serve, args)...)
}

// launchWords starts any program with its arguments.
func launchWords(t testing.TB, words ...string) *victim {
	t.Helper()
	p, err := proc.Launch(context.Background(), proc.Command{Words: words, Env: append(os.Environ(), asProgram+"=1")})
	must(t, err)
	v := &victim{
		TB: t, Process: p, out: &transcript{p.Out}, errs: &transcript{p.Err},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, DisableCompression: true}, Timeout: patience},
	}
	t.Cleanup(func() {
		v.Kill()
		v.client.CloseIdleConnections()
		if strings.Contains(v.errs.String(), "WARNING: DATA RACE") {
			t.Errorf("%q:\n%s", words, v.errs)
		} else if t.Failed() {
			t.Logf("%q said last:\n%s", words, v.errs.Tail())
		}
	})
	return v
}

// listens waits until the banner tells the addresses; false if the process is gone before.
func (v *victim) listens() bool {
	v.Helper()
	if v.base != "" { // others may read it by now
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := v.Await(ctx, proc.Addresses)
	switch {
	case err == nil:
		v.base, v.ops = m[1], m[2]
	case ctx.Err() != nil:
		v.Fatal(err)
	}
	return err == nil
}

// ready waits until the node answers questions.
func (v *victim) ready() *victim {
	v.Helper()
	v.listened().until("the node is ready", v.isReady)
	return v
}

// isReady reports whether the node says so.
func (v *victim) isReady() bool {
	a, err := v.ask(v.ops + "/readyz")
	return err == nil && a.status == http.StatusOK
}

// until tries again and again what must come true while the process lives.
func (v *victim) until(what string, holds func() bool) {
	v.Helper()
	v.untilWithin(patience, what, holds)
}

func (v *victim) untilWithin(longest time.Duration, what string, holds func() bool) {
	v.Helper()
	for deadline := time.Now().Add(longest); !holds(); time.Sleep(20 * time.Millisecond) {
		if v.IsGone() {
			v.Fatalf("ledgerd ended with %v before %s:\n%s", v.State(), what, v.errs)
		}
		if time.Now().After(deadline) {
			v.Fatalf("it does not come true within %v that %s:\n%s", longest, what, v.errs)
		}
	}
}

// ask sends one request.
func (v *victim) ask(url string) (answer, error) { return ask(v.client, url) }

// get asks for a path below the base address. It must be answered.
func (v *victim) get(path string) answer {
	v.Helper()
	a, err := v.ask(v.base + path)
	if err != nil {
		v.Fatalf("GET %s: %v\n%s", path, err, v.errs)
	}
	return a
}

// metric returns one of the node's figures, 0 where it has none of the name.
func (v *victim) metric(name string) float64 {
	v.Helper()
	all, err := proc.Scrape(v.client, v.ops)
	if err != nil {
		v.Fatalf("%v\n%s", err, v.errs)
	}
	return all[name]
}

// usage returns what the process has used.
func (v *victim) usage() proc.Usage {
	v.Helper()
	u, err := proc.UsageOf(v.Pid())
	must(v, err)
	return u
}

// ending waits for the end of the input and returns what the node logged about it, without the time.
func (v *victim) ending() string {
	v.Helper()
	return v.errs.await(v, endOfInput.String())[1]
}

// gone waits for the end of the process and returns its exit code, -1 after a kill.
func (v *victim) gone(within time.Duration) int {
	v.Helper()
	select {
	case <-v.Gone():
	case <-time.After(within):
		v.Fatalf("the process has not ended within %v:\n%s", within, v.errs)
	}
	return v.State().ExitCode()
}

// stop ends the process as an operator does.
func (v *victim) stop() {
	v.Helper()
	v.Signal(syscall.SIGTERM)
	if code := v.gone(patience); code != exitOK {
		v.Fatalf("exit code %d after SIGTERM, want 0:\n%s", code, v.errs)
	}
}

// verified checks what a data directory holds with ledgerd's own commands.
func verified(t *testing.T, dir string) {
	t.Helper()
	for _, what := range []string{"log", "snapshot"} {
		toolSays(t, exitOK, "", what, "verify", "--data-dir", dir)
	}
}

// client asks one node after the other, and keeps no connection.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// answer is a response as it was read.
type answer struct {
	status int
	header http.Header
	body   string
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
