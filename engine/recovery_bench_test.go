package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
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

// writeAccounts leaves a data directory with n accounts in its snapshot: account returns the i-th.
func writeAccounts(b *testing.B, path string, n int, account func(i, n int) *ledger.Account) {
	b.Helper()
	dir, err := datadir.Open(path)
	noErr(b, err)
	defer dir.Close()
	root := rootBlock(1000)
	var hash ledger.StateHash
	for i := range n {
		hash.Add(account(i, n).StateTerm())
	}
	record := &ledger.Record{Version: 1, Kind: ledger.BlockRecord, Slot: root.Slot, Hash: root.Blockhash, Block: root, FirstSeq: 1, StateHash: hash}
	log, err := wal.Open(wal.Config{FS: vfs.Disk{}, Dir: datadir.LogDir(path), Logger: slog.New(slog.DiscardHandler)}, wal.End{})
	noErr(b, err)
	noErr(b, errors.Join(log.Commit([]*ledger.Record{record}), log.Close()))
	store, err := snapshot.OpenStore(vfs.Disk{}, datadir.SnapshotDir(path), nil)
	noErr(b, err)
	const parts = 2
	var all []snapshot.Part
	for p := range parts {
		all = append(all, snapshot.Part{
			Accounts: func(visit func(*ledger.Account) bool) error {
				for i := n * p / parts; i < n*(p+1)/parts; i++ {
					visit(account(i, n))
				}
				return nil
			},
			Mints: func(visit func(ledger.MintWrite) bool) error { return nil },
		})
	}
	m := snapshot.Meta{Version: 1, StateHash: hash, Slot: root.Slot, Blockhash: root.Blockhash, Block: root, Root: root.Slot, Floor: root.Slot}
	_, err = store.Write(b.Context(), m, all, []snapshot.HeldBlock{{Block: root}}, snapshot.Pace{})
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
