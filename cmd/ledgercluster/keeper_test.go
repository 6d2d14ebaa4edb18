package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// told is an output that a test reads while it is written.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *told) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *told) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// until waits for something that a process does.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it never comes about that %s", what)
		}
	}
}

// A process that ends is started again, whatever ended it, and its output is kept. Once it is
// stopped it stays so.
func TestKeeperStartsAgainWhatEnded(t *testing.T) {
	dir := t.TempDir()
	log, out := filepath.Join(dir, "log"), &told{}
	stop, err := keep(daemon{"worker", []string{"/bin/sh", "-c", "echo began; [ -e " + dir + "/second ] || { touch " + dir + "/second; exit 3; }; exec sleep 1000"}}, log, out)
	must(t, err)
	began := func() int {
		content, _ := os.ReadFile(log)
		return strings.Count(string(content), "began")
	}
	until(t, "it is started again", func() bool { return began() == 2 })
	if !strings.Contains(out.String(), "worker ended (exit status 3) and is started again") {
		t.Errorf("a person is told %q", out)
	}
	stop()
	if n := began(); n != 2 {
		t.Errorf("it was started %d times", n)
	}
}
