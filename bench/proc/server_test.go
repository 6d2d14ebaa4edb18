package proc

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// built returns the ledgerd that all tests start.
var built = sync.OnceValues(Build)

// program returns the ledgerd, or fails the test.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	must(t, err)
	return path
}

func start(t *testing.T, o Options, args ...string) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := Start(t.Context(), program(t), args, o)
	must(t, err)
	t.Cleanup(s.Kill)
	return s
}

// tell writes one block into the feed, which is the ledger's first.
func tell(t *testing.T, s *Server) {
	t.Helper()
	w, err := codec.NewEventWriter(s.Feed())
	if err == nil {
		err = w.Write(&ledger.Block{Slot: 8, ParentSlot: 7, Accounts: []ledger.AccountWrite{{Pubkey: ledger.Pubkey{1}, Lamports: 5}}})
	}
	must(t, err)
}

func metrics(t *testing.T, s *Server) map[string]float64 {
	t.Helper()
	m, err := s.Metrics()
	must(t, err)
	return m
}

func TestServerFollowsItsFeed(t *testing.T) {
	s := start(t, Options{}, "--shards", "3", "--log-level", "error") // a later flag wins
	tell(t, s)
	must(t, s.Ready(t.Context()))
	m := metrics(t, s)
	if m[`ledgerd_slot{commitment="processed"}`] != 8 || Sum(m, "ledgerd_accounts") != 1 || m["go_goroutines"] < 5 || m[`ledgerd_accounts{shard="2"}`]+m[`ledgerd_accounts{shard="1"}`]+m[`ledgerd_accounts{shard="0"}`] != 1 {
		t.Errorf("the metrics say %v", m)
	}
	response, err := http.Get(s.URL() + "/status")
	must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("X-RateLimit-Limit") != "0" {
		t.Errorf("GET %s/status: %d, %v", s.URL(), response.StatusCode, response.Header)
	}
	if want := strings.Replace(s.URL(), "http", "ws", 1) + "/ws/accounts"; s.StreamURL() != want {
		t.Errorf("StreamURL() = %s, want %s", s.StreamURL(), want)
	}
}

func TestUsageGrowsWithWork(t *testing.T) {
	s := start(t, Options{})
	before, err := UsageOf(s.Pid())
	must(t, err)
	if before.RSSBytes < 1<<20 || before.FDs < 5 {
		t.Errorf("a server at rest: %+v", before)
	}
	for {
		metrics(t, s)
		now, err := UsageOf(s.Pid())
		must(t, err)
		if now.CPU() > before.CPU()+20*time.Millisecond {
			return
		}
	}
}

func TestUsageOfNobody(t *testing.T) {
	if u, err := UsageOf(1 << 30); err == nil {
		t.Errorf("got %+v", u)
	}
}

func TestDataDirectoryGoesUnlessItWasNamed(t *testing.T) {
	s := start(t, Options{})
	if _, err := os.Stat(s.dataDir); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dataDir); !os.IsNotExist(err) {
		t.Errorf("after Stop the directory is there: %v", err)
	}
	named := filepath.Join(t.TempDir(), "data")
	for range 2 {
		s := start(t, Options{DataDir: named})
		if m := metrics(t, s); len(m) == 0 {
			t.Error("no metrics")
		}
		s.Kill()
		if _, err := os.Stat(named); err != nil {
			t.Errorf("after Kill: %v", err)
		}
	}
}

func TestServerIsFoundWhereItWasPut(t *testing.T) {
	first := start(t, Options{})
	address := strings.TrimSuffix(strings.TrimPrefix(first.URL(), "http://"), "/api")
	must(t, first.Stop())
	if second := start(t, Options{Listen: address}); second.URL() != first.URL() {
		t.Errorf("the second server is at %s, not at %s", second.URL(), first.URL())
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := Start(t.Context(), program(t), []string{"--shards=-1"}, Options{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "--shards must be") {
		t.Errorf("with a bad flag: err = %v", err)
	}
	dir := t.TempDir()
	if _, err = Start(t.Context(), filepath.Join(dir, "none"), nil, Options{Dir: dir}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a program: err = %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A flag of the caller's own ledgerd must not reach the one that is measured.
func TestEnvironmentSetsNoFlags(t *testing.T) {
	t.Setenv("LEDGERD_SHARDS", "none")
	start(t, Options{})
}

func TestServerThatEndsBadlySaysSo(t *testing.T) {
	s := start(t, Options{})
	if _, err := s.Feed().WriteString("no ledger at all"); err != nil {
		t.Fatal(err)
	}
	s.Feed().Close()
	<-s.Gone()
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "none of the recorded forms") {
		t.Errorf("err = %v", err)
	}
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
	if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("a server that is gone gets ready: %v", err)
	}
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
		if got := complaints(said); got != want {
			t.Errorf("of %q it complains %q, want %q", said, got, want)
		}
	}
}
