package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
)

// How long a start takes, beside redis, and how long answers take while a snapshot is taken is measured from outside: by
// the scenarios recover and mixed of package bench. What follows is what a start is measured with here.

// recoveredAccounts is how many accounts a start is measured with: LEDGERD_BENCH_ACCOUNTS or a
// million.
func recoveredAccounts(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("LEDGERD_BENCH_ACCOUNTS"))
	if err != nil {
		n = 1_000_000
	}
	return n
}

// benchKey returns the i-th of n keys, in order and spread over the key space.
func benchKey(i, n int) (k ledger.Pubkey) {
	k = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
	binary.BigEndian.PutUint64(k[:], math.MaxUint64/uint64(n)*uint64(i)+binary.BigEndian.Uint64(k[8:])%(math.MaxUint64/uint64(n)))
	return k
}

// writeAccounts imports n accounts, of which account returns the i-th, as the state at the block before a first one.
func writeAccounts(b *testing.B, path string, n int, account func(i, n int) *ledger.Account) {
	b.Helper()
	dir, _, err := datadir.OpenForImport(path)
	noErr(b, err)
	defer dir.Close()
	all, err := importer.New(importer.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	for i := 0; err == nil && i < n; i++ {
		w := account(i, n).Write()
		err = all.Add(1000, 0, &w)
	}
	if err == nil {
		_, err = all.Finish(b.Context(), importer.Point{Slot: 1000, ParentSlot: 999, Blockhash: rootBlock(1000).Blockhash})
	}
	noErr(b, err)
}

// residentBytes returns what the process takes of the machine's memory.
func residentBytes() (n int64) {
	content, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(content)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &n); err == nil {
			return n << 10
		}
	}
	return 0
}
