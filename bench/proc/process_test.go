package proc_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// patience decides only when a test fails.
const patience = time.Minute

// shell starts a script, which says "begun" when it has begun.
func shell(t *testing.T, script string) *proc.Process {
	t.Helper()
	p, err := proc.Launch(t.Context(), proc.Command{Words: []string{"/bin/sh", "-c", script}, Env: []string{"WHO=me", "PATH=" + os.Getenv("PATH")}})
	must(t, err)
	_, err = p.Await(t.Context(), regexp.MustCompile("begun"))
	must(t, err)
	return p
}

func TestHowAProcessEnds(t *testing.T) {
	const lives = "; echo begun; while :; do sleep 0.01; done"
	for name, tt := range map[string]struct {
		script   string
		signal   syscall.Signal
		patience time.Duration
		code     int
		want     string // of the error; "": none
	}{
		"by itself":                  {"trap 'exit 0' TERM" + lives, syscall.SIGTERM, patience, 0, ""},
		"by the signal":              {"echo begun; exec sleep 1000", syscall.SIGUSR1, patience, -1, ""}, // SIGINT is ignored below what runs in the background
		"by another signal":          {"trap 'kill -9 $$' TERM" + lives, syscall.SIGTERM, patience, -1, "killed"},
		"with a complaint":           {"trap 'echo alas $WHO >&2; exit 3' TERM" + lives, syscall.SIGTERM, patience, 3, "alas me"},
		"by force":                   {"trap '' TERM" + lives, syscall.SIGTERM, 50 * time.Millisecond, -1, "did not stop"},
		"together with its children": {"(sleep 1000; true) & echo begun; wait", syscall.SIGTERM, patience, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, tt.script)
			if p.IsGone() {
				t.Error("it is gone before it was asked to")
			}
			ctx, cancel := context.WithTimeout(t.Context(), tt.patience)
			defer cancel()
			err := p.Stop(ctx, tt.signal)
			if code := p.State().ExitCode(); code != tt.code || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("exit code %d, %v; want %d and %q", code, err, tt.code, tt.want)
			}
		})
	}
}

func TestAwaitEndsWithTheProcessAndWithItsContext(t *testing.T) {
	t.Parallel()
	p := shell(t, "echo why >&2; echo begun 17; read x; exec sleep 1000")
	if m, err := p.Await(t.Context(), regexp.MustCompile(`begun (\d+)`)); err != nil || m[1] != "17" {
		t.Errorf("%q, %v", m, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := p.Out.Await(ended, regexp.MustCompile("never")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %q, %v", m, err)
	}
	p.Kill()
	if m, err := p.Await(t.Context(), regexp.MustCompile("never")); err == nil || !strings.HasSuffix(err.Error(), "it ended; it said: why") {
		t.Errorf("of a process that is gone: %q, %v", m, err)
	}
}

func TestServersThatCannotStartSayWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := proc.StartNATS(t.Context(), natstest.Program(t), proc.NATSOptions{Dir: dir, Lines: []string{"riddle: {"}})
	ledgertest.ErrorSays(t, err, "Parse error", "with a configuration that is broken")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFindLooksBesideAProgramFirst(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/sh", []byte("#!/bin/sh\n"), 0o700))
	if got, err := proc.Find("sh", dir+"/other"); got != dir+"/sh" {
		t.Errorf("beside: %s, %v", got, err)
	}
	if got, err := proc.Find("sh", "/none/other"); !strings.HasSuffix(got, "bin/sh") {
		t.Errorf("on the path: %s, %v", got, err)
	}
}

// TestAProgramOutlivesTheThreadThatAskedForIt has the threads end of those who launched programs, but for the main one, which never does.
func TestAProgramOutlivesTheThreadThatAskedForIt(t *testing.T) {
	launched := make(chan *proc.Process)
	for range 4 {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			p, err := proc.Launch(t.Context(), proc.Command{Words: []string{"sleep", "60"}})
			if err != nil {
				t.Error(err)
			}
			launched <- p
			time.Sleep(10 * time.Millisecond) // so that each has a thread of its own
		}()
	}
	var all []*proc.Process
	for range 4 {
		all = append(all, <-launched)
	}
	time.Sleep(200 * time.Millisecond)
	for _, p := range all {
		if p.IsGone() {
			t.Errorf("a program ended: %v", p.State())
		}
		p.Kill()
	}
}
