package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// A process that ends is started again, whatever ended it, and its output is kept. Once it is
// stopped it stays so.
func TestKeeperStartsAgainWhatEnded(t *testing.T) {
	dir := t.TempDir()
	log, out := filepath.Join(dir, "log"), proc.NewTranscript()
	stop, err := keep(daemon{"worker", []string{"/bin/sh", "-c", "echo began; [ -e " + dir + "/second ] || { touch " + dir + "/second; exit 3; }; exec sleep 1000"}}, log, out)
	must(t, err)
	began := func() int {
		content, _ := os.ReadFile(log)
		return strings.Count(string(content), "began")
	}
	for late := time.Now().Add(2 * time.Minute); began() < 2 && time.Now().Before(late); {
		time.Sleep(10 * time.Millisecond)
	}
	ledgertest.Contains(t, out.String(), "worker ended (exit status 3) and is started again", "what a person is told")
	stop()
	ledgertest.Equal(t, began(), 2, "starts")
}
