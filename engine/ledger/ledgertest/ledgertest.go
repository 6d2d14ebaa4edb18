// Package ledgertest has what tests of several packages need: random sources that can be repeated, keys by number, and
// what a process takes.
package ledgertest

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// Seeded returns a random source. LEDGERD_TEST_SEED repeats one run.
func Seeded(t testing.TB, seed uint64) *rand.Rand {
	if text := os.Getenv("LEDGERD_TEST_SEED"); text != "" {
		fixed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("LEDGERD_TEST_SEED is %q, want a number", text)
		}
		seed = fixed
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// Sample returns of how much of everything a test tries some: all of it where LEDGERD_CRASH_ALL is set, as in make crash-all, and
// less with -short, since the race detector takes ten times as long.
func Sample(all, some, short int) int {
	switch {
	case os.Getenv("LEDGERD_CRASH_ALL") != "":
		return all
	case testing.Short():
		return short
	}
	return some
}

// Key returns the n-th key of a test: fixed, and spread over the key space.
func Key(n int) ledger.Pubkey {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// HeapBytes returns what is reachable on the heap.
func HeapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// CPUTime returns how long the process was on a processor.
func CPUTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
