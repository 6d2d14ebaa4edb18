package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// tool runs a command and returns what it wrote and its exit code.
func tool(t *testing.T, args ...string) (out, errors string, code int) {
	t.Helper()
	var outBuf, errBuf bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code = run(ctx, args, &streams{&outBuf, &errBuf})
	return outBuf.String(), errBuf.String(), code
}

// toolSays runs a command, checks its exit code and that it complains of what, and returns what it printed.
func toolSays(t *testing.T, want int, what string, args ...string) string {
	t.Helper()
	out, errs, code := tool(t, args...)
	if code != want || !strings.Contains(errs, what) {
		t.Errorf("ledgerd %q: exit code %d, want %d and %q, said:\n%s%s", args, code, want, what, out, errs)
	}
	return out
}

const (
	systemProgram = "11111111111111111111111111111111"
	tokenProgram  = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	poolProgram   = "PooL111111111111111111111111111111111111111"
)

var levels = []string{"processed", "confirmed", "finalized"}

// simPrograms own all accounts of the simulator.
var simPrograms = []string{
	systemProgram, tokenProgram, "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb", "Vote111111111111111111111111111111111111111", poolProgram,
}

// quietLog is for parts whose log lines are not looked at, but where one schedule of faults is run again.
func quietLog() *slog.Logger {
	if _, again := os.LookupEnv("LEDGERD_FAULT_SEED"); again {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// newDataDir makes a directory one that the tools take for a node's, and returns it.
func newDataDir(t testing.TB, dir string) string {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte(`{"node_id":"0123"}`), 0o600))
	return dir
}

func toolKey(name string) ledger.Pubkey { return sha256.Sum256([]byte(name)) }
func toolHash(slot ledger.Slot) ledger.Hash {
	return ledger.Hash(toolKey(fmt.Sprint("block ", slot)))
}

// knownCommits returns the commits of a log of all kinds of records: base state, the root, a
// block, a rollback with the block that caused it, and a status.
func knownCommits() [][]*ledger.Record {
	block := func(slot, parent ledger.Slot, updates ...ledger.Update) *ledger.Record {
		b := &ledger.Block{Slot: slot, ParentSlot: parent, Blockhash: toolHash(slot), TransactionCount: 1}
		b.AddTransaction(ledger.Transaction{Accounts: []ledger.Pubkey{toolKey("a")}})
		return &ledger.Record{Kind: ledger.BlockRecord, Slot: slot, Hash: toolHash(slot), Block: b, Updates: updates}
	}
	update := func(name string, lamports ledger.Lamports) ledger.Update {
		return ledger.Update{Account: ledger.Account{Pubkey: toolKey(name), Lamports: lamports, Owner: ledger.SystemProgram, Known: ledger.FieldOwner, Provenance: 3}}
	}
	moved := update("b", 9)
	moved.OwnerBefore, moved.WalletBefore = ledger.Some(ledger.TokenProgram), ledger.Some(toolKey("wallet"))
	commits := [][]*ledger.Record{
		{{Kind: ledger.BaseRecord, Slot: 4, Base: &ledger.BaseState{Slot: 4, Accounts: []ledger.AccountWrite{{Pubkey: toolKey("a"), Lamports: 1}}}}},
		{block(5, 4, update("a", 2)), {Kind: ledger.StatusRecord, Slot: 5, Hash: toolHash(5), Status: ledger.StatusFinalized}},
		{block(6, 5, update("a", 3), moved)},
		{
			{Kind: ledger.RollbackRecord, Slot: 5, Hash: toolHash(5), FromSlot: 6, Updates: []ledger.Update{update("a", 2), update("b", 0)}},
			block(8, 5),
		},
	}
	version, seq := ledger.Version(0), ledger.Seq(1)
	for _, c := range commits {
		for _, r := range c {
			version++
			r.Version, r.FirstSeq = version, seq
			seq += ledger.Seq(len(r.Updates))
		}
	}
	return commits
}

// writeLog writes commits to the log of a data directory. The log is left as a crash
// leaves it unless it is closed.
func writeLog(t testing.TB, dataDir string, commits [][]*ledger.Record, segmentBytes int64) *wal.Log {
	t.Helper()
	log, err := wal.Create(wal.Config{FS: vfs.Disk{}, Dir: datadir.LogDir(dataDir), SegmentBytes: segmentBytes, Logger: quietLog()}, 1, 0)
	must(t, err)
	t.Cleanup(func() { log.Close() })
	for _, c := range commits {
		must(t, log.Commit(c))
	}
	return log
}

// writeSnapshot writes a snapshot of the block at slot, after the record of a version, with so
// many accounts.
func writeSnapshot(t testing.TB, dataDir string, slot, version, accounts int) {
	t.Helper()
	store, err := snapshot.OpenStore(vfs.Disk{}, datadir.SnapshotDir(dataDir), quietLog())
	must(t, err)
	list := make([]ledger.Account, accounts)
	var hash ledger.StateHash
	for i := range list {
		list[i] = ledger.Account{Pubkey: ledger.Pubkey{byte(i >> 8), byte(i)}, Lamports: ledger.Lamports(i + 1), Owner: ledger.SystemProgram, Known: ledger.FieldOwner, Provenance: 3}
		hash.Add(list[i].StateTerm())
	}
	at := ledger.Slot(slot)
	block := &ledger.Block{Slot: at, ParentSlot: at - 1, Blockhash: toolHash(at), Status: ledger.Finalized}
	meta := snapshot.Meta{Version: ledger.Version(version), Slot: at, Blockhash: block.Blockhash, Seq: 7, StateHash: hash, Block: block, Root: at, Floor: at}
	part := snapshot.Part{
		Accounts: func(visit func(*ledger.Account) error) error {
			for i := range list {
				if err := visit(&list[i]); err != nil {
					return err
				}
			}
			return nil
		},
		Mints: func(func(ledger.MintWrite) error) error { return nil },
	}
	_, err = store.Write(t.Context(), meta, []snapshot.Part{part}, []snapshot.HeldBlock{{Block: block}}, snapshot.Pace{})
	must(t, err)
}

// listing returns all names below a directory with the checksums of their contents.
func listing(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			fmt.Fprintln(&all, path)
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %x\n", path, sha256.Sum256(content))
		return err
	}))
	return all.String()
}
