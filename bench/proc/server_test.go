package proc

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/proc/proctest"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// built returns the ledgerd that all tests start.
var built = sync.OnceValues(func() (string, error) { return proctest.Tool("", "ledgerd") })

// program returns the ledgerd, or fails the test.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	must(t, err)
	return path
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context(), program(t), nil, Options{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(s.Kill)
	return s
}

func TestUsageGrowsWithWorkAndEndsWithTheProcess(t *testing.T) {
	s := start(t)
	before, err := UsageOf(s.Pid())
	must(t, err)
	if before.RSSBytes < 1<<20 || before.FDs < 5 {
		t.Errorf("a server at rest: %+v", before)
	}
	for now := before; now.CPU < before.CPU+20*time.Millisecond; {
		_, err := s.Metrics()
		must(t, err)
		now, err = UsageOf(s.Pid())
		must(t, err)
	}
	s.Kill()
	if u, err := UsageOf(s.Pid()); err == nil {
		t.Errorf("of a process that is gone: %+v", u)
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := Start(t.Context(), program(t), []string{"--listen", "192.0.2.1:1"}, Options{Dir: t.TempDir()})
	ledgertest.ErrorSays(t, err, "cannot listen on --listen", "with another flag, which comes later and wins")
	dir := t.TempDir()
	_, err = Start(t.Context(), filepath.Join(dir, "none"), nil, Options{Dir: dir})
	ledgertest.ErrorIs(t, err, os.ErrNotExist, "without a program")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A flag of the caller's own ledgerd must not reach the one that is measured.
func TestEnvironmentSetsNoFlags(t *testing.T) {
	t.Setenv("LEDGERD_SHARDS", "none")
	start(t)
}

func TestServerThatEndsBadlySaysSo(t *testing.T) {
	s := start(t)
	_, err := s.Feed().WriteString("no ledger at all")
	must(t, err)
	s.Feed().Close()
	<-s.Gone()
	ledgertest.ErrorSays(t, s.Stop(), "none of the recorded forms", "Stop")
}

func TestServerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, program(t), nil, Options{Dir: t.TempDir()})
	must(t, err)
	cancel()
	<-s.Gone()
	s.Kill()
	if err := syscall.Kill(s.Pid(), 0); err == nil {
		t.Error("the process lives")
	}
	ledgertest.ErrorSays(t, s.Ready(t.Context()), "ended", "a server that is gone gets ready")
}

func TestParseMetrics(t *testing.T) {
	got, err := parseMetrics("# HELP a b\n\na 1\nb{x=\"y z\"} 2.5\nb{x=\"w\"} 3\nbc 7\n")
	if err != nil || got["a"] != 1 || got[`b{x="y z"}`] != 2.5 || Sum(got, "b") != 5.5 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"a", "a b", "a 1 2x"} {
		if got, err := parseMetrics(bad); err == nil {
			t.Errorf("parseMetrics(%q) = %v", bad, got)
		}
	}
}

func TestASlowDiskIsNoComplaint(t *testing.T) {
	disk := "level=WARN msg=\"the disk took long to sync the log\" took=1.2s\n"
	other := "level=WARN msg=rollback\n"
	for said, want := range map[string]string{"": "", disk: "", disk + other + disk: other, other: other} {
		ledgertest.Equal(t, complaints(said), want, "of %q it complains", said)
	}
}
