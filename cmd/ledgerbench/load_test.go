package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// figures is what --json must hold.
type figures struct {
	Requests struct{ Due, Sent, OK, Failed, Gone, Unsent int }
	Latency  map[string]float64 `json:"latency_ms"`
	Errors   map[string]int
	Wrong    map[string]int
	Missed   []string
	Search   []struct{ Rate float64 }
	Statuses map[string]int
	Bytes    int
	Settings struct {
		Rate float64
	}
}

// loads runs the command on a node, and returns what it wrote too.
func loads(t *testing.T, n *node, args ...string) (code int, s *said, f figures) {
	t.Helper()
	n.start(t)
	file := filepath.Join(t.TempDir(), "figures.json")
	code, s = does(t, append([]string{"load", n.url, "--ca", n.ca, "--json", file}, args...)...)
	if code == exitOK {
		content, err := os.ReadFile(file)
		must(t, err)
		must(t, json.Unmarshal(content, &f))
	}
	return code, s, f
}

func TestLoadGivesFigures(t *testing.T) {
	t.Parallel()
	n := new(node)
	code, s, f := loads(t, n, "--duration", "300ms", "--warmup", "50ms", "--path", "/account/*?min_slot=12", "--path", "/account/*/tokens?min_slot=12")
	if code != exitOK || s.err.Len() > 0 || f.Requests.Due != 300 || f.Requests.OK+f.Requests.Gone+f.Requests.Failed+f.Requests.Unsent != 300 {
		t.Errorf("exit code %d, said %q, %+v, want 300 requests", code, &s.err, f.Requests)
	}
	if f.Statuses["200"] != f.Requests.OK || f.Bytes == 0 || f.Settings.Rate != 1000 {
		t.Errorf("%+v", f)
	}
	for _, name := range []string{"p50", "p90", "p99", "p99_9", "p99_99", "max", "mean"} {
		if f.Latency[name] <= 0 {
			t.Errorf("%s is %v", name, f.Latency[name])
		}
	}
	if n.asked["/api/account/K1?min_slot=12"] == 0 || n.asked["/api/account/K%25zz/tokens?min_slot=12"] == 0 {
		t.Errorf("the node was asked for %v", n.asked)
	}
	for _, want := range []string{"300 due", "p99.99", "200: "} {
		ledgertest.Contains(t, s.out.String(), want, "the report")
	}
}

// What a node allows is not exceeded, unless that is asked for; then a refusal is one sentence.
func TestLoadObeysLimits(t *testing.T) {
	t.Parallel()
	short, keys := []string{"--duration", "200ms", "--warmup", "100ms"}, filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(keys, []byte("one\ntwo\n"), 0o600))
	for name, tt := range map[string]struct {
		limit   int
		args    []string
		refused bool
		code    int
	}{
		"default":            {100, nil, false, exitOK},
		"higher rate":        {100, []string{"--rate", "5000"}, false, exitOK},
		"closed loop":        {100, []string{"--rate", "max", "--path", "/status"}, false, exitOK},
		"two addresses":      {200, []string{"--rate", "5000", "--from", "127.0.0.1,127.0.0.2"}, false, exitOK},
		"one address of two": {200, []string{"--rate", "5000", "--from", "127.0.0.1,127.0.0.2", "-c", "1"}, false, exitOK},
		"two keys":           {200, []string{"--rate", "5000", "--api-key-file", keys}, false, exitOK},
		"ignored":            {10, []string{"--rate", "1000", "--ignore-limits"}, true, exitOK},
		"almost used":        {12, nil, false, exitFailure},
		"used at once":       {8, nil, false, exitFailure},
		"used up":            {-1, nil, false, exitFailure},
		"used, ignored":      {1, []string{"--ignore-limits", "--path", "/status"}, true, exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &node{limit: tt.limit}
			code, s, f := loads(t, n, append(tt.args, short...)...)
			if len(n.spent) > 1 && f.Requests.Due <= tt.limit*3/4 { // a third of all is for warming up
				t.Errorf("%d requests were due of %d clients, each of which is allowed %d", f.Requests.Due, len(n.spent), tt.limit)
			}
			if code != tt.code || (f.Statuses["429"] > 0) != tt.refused {
				t.Errorf("exit code %d, statuses %v, said %q; want %d, and refusals: %v", code, f.Statuses, &s.err, tt.code, tt.refused)
			}
			if code == exitOK && f.Requests.OK == 0 && !tt.refused {
				t.Errorf("nothing was answered: %+v", f.Requests)
			}
			if n := strings.Count(s.out.String(), "retry after 37 s"); (n == 1) != tt.refused || n > 1 {
				t.Errorf("a refusal is told %d times:\n%s", n, &s.out)
			}
			if code != exitOK && (strings.Count(s.err.String(), "\n") != 1 || strings.Contains(s.err.String(), "retry after 37s") != (tt.limit < 0)) {
				t.Errorf("said %q, want one line, with the wait after a refusal", &s.err)
			}
		})
	}
}

// So many requests are sent as they are asked for, or none: not a few a day.
func TestLoadRefusesMoreRequestsThanAreAllowed(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"-n 50": "", "-n 200 -d 200ms": "",
		"-n 200": "no room for --requests=200;", "-n 50 --warmup 1s": "no room for --requests=50 after a warm-up of 1s;",
	} {
		code, s, f := loads(t, &node{limit: 100}, append(strings.Fields(more), "--path", "/status")...)
		if want == "" && (code != exitOK || f.Requests.OK == 0) || want != "" && (code != exitFailure || !strings.Contains(s.err.String(), want)) {
			t.Errorf("%s: exit code %d, said %q, %+v", more, code, &s.err, f.Requests)
		}
	}
}

// An interrupt before anything is measured ends the command at once, and gives no figures that seem measured.
func TestInterruptedBeforeItMeasures(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"--path /ok --path /slow":             "context canceled", // the second is looked for and does not answer
		"--path /ok --warmup 1h --slo max=1h": "interrupted while warming up: nothing was measured",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			n := &node{told: func(asked int) {
				if asked == 2 && want == "context canceled" || asked > 2 { // the first two only look what is there
					stop()
				}
			}}
			n.start(t)
			s := new(said)
			code := run(ctx, append([]string{"load", n.url, "--ca", n.ca, "-c", "1"}, strings.Fields(more)...), s.streams())
			if code != exitFailure || !strings.Contains(s.err.String(), want) || s.out.Len() > 0 {
				t.Errorf("exit code %d, said %q:\n%s", code, &s.err, &s.out)
			}
		})
	}
}

func TestInterruptedLoadGivesFigures(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"--duration 1h": "200: ",
		"--duration 1h --rate search --slo failed=100%":   "200: ",
		"--duration 10ms --rate search --slo failed=100%": "all is met",
	} {
		t.Run(more, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			n := &node{told: func(asked int) {
				if asked > 2 && want == "200: " || asked > 16 { // the first two only look what is there
					stop()
				}
			}}
			n.start(t)
			s := new(said)
			args := []string{"load", n.url, "--ca", n.ca, "--warmup", "0", "-c", "1", "--path", "/blocks/latest"}
			code := run(ctx, append(args, strings.Fields(more)...), s.streams())
			if code != exitOK || !strings.Contains(s.out.String(), want) {
				t.Errorf("exit code %d, said %q:\n%s", code, &s.err, &s.out)
			}
		})
	}
}
