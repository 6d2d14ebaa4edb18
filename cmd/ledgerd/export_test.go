package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/file"
)

// exportedEvents is what the fake ledger of these tests consists of.
func exportedEvents() []ledger.Event {
	block := func(slot, parent ledger.Slot, status ledger.Commitment) *ledger.Block {
		return &ledger.Block{Slot: slot, ParentSlot: parent, Blockhash: toolHash(slot), Status: status, TransactionCount: 2}
	}
	partial := ledger.AccountWrite{Pubkey: toolKey("b"), Lamports: 1<<64 - 1, Known: ledger.FieldToken,
		Token: &ledger.TokenAccount{Mint: toolKey("mint"), Owner: toolKey("a"), Amount: 1<<64 - 1}}
	return []ledger.Event{
		&ledger.BaseState{Slot: 6, Accounts: []ledger.AccountWrite{{Pubkey: toolKey("a"), Lamports: 1}, partial}},
		&ledger.BaseState{Slot: 6, Mints: []ledger.MintWrite{{Pubkey: toolKey("mint"), Mint: ledger.Mint{Decimals: 3}}}},
		block(5, 4, ledger.Finalized), block(6, 5, ledger.Finalized),
		&ledger.SlotStatus{Slot: 6, Status: ledger.StatusFinalized},
		block(9, 6, ledger.Processed),
		&ledger.SlotStatus{Slot: 9, Status: ledger.StatusConfirmed},
	}
}

// exports returns an exporter of events, which fails in the end with err.
func exports(events []ledger.Event, err error) exporter {
	return func(_ context.Context, _ string, _ *slog.Logger, emit func(ledger.Event) error) error {
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
		}
		return err
	}
}

// readExport returns how many events the file source reads from a file.
func readExport(t *testing.T, path string) (events int, err error) {
	t.Helper()
	source, err := file.Open(path, quietLog())
	must(t, err)
	err = source.Run(t.Context(), nil, func(context.Context, ledger.Event) error {
		events++
		return nil
	})
	return events, err
}

// exported runs the command with an exporter in place of the engine's. It may replace a file that is there before.
func exported(t *testing.T, ctx context.Context, format, output string, export exporter) (out *bytes.Buffer, said string, err error) {
	t.Helper()
	var errs bytes.Buffer
	out = &bytes.Buffer{}
	_, missing := os.Stat(output)
	c := exportCommand{DataDir: newDataDir(t, t.TempDir()), Format: format, Output: output, Force: missing == nil}
	err = c.run(ctx, &streams{out, &errs}, export)
	return out, errs.String(), err
}

// olderExport returns the path of an export in a folder of its own.
func olderExport(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "export")
	must(t, os.WriteFile(path, []byte("an older export"), 0o600))
	return path
}

// holds compares a file with what it must hold; nothing may lie beside it.
func holds(t *testing.T, what, path, want string) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Dir(path) + "/*")
	if content, err := os.ReadFile(path); err != nil || string(content) != want || len(names) != 1 {
		t.Errorf("%s: %q, the export of %d bytes is not what it must be, or %v", what, names, len(content), err)
	}
}

// Whenever an export fails, no file of its name appears, one that was there stays, and what
// went to standard output is refused.
func TestFailedExportNeverLooksComplete(t *testing.T) {
	broken := errors.New("broken")
	all := exportedEvents()
	for _, format := range []string{"ndjson", "binary"} {
		for n := range len(all) + 1 {
			what := fmt.Sprintf("%s, after %d events", format, n)
			path := olderExport(t)
			_, said, err := exported(t, t.Context(), format, path, exports(all[:n], broken))
			if !errors.Is(err, broken) || !regexp.MustCompile(`^cannot export \S+: broken$`).MatchString(err.Error()) || said != "" {
				t.Errorf("%s: err = %v, said %q", what, err, said)
			}
			holds(t, what, path, "an older export")

			out, _, err := exported(t, t.Context(), format, "-", exports(all[:n], broken))
			ledgertest.ErrorIs(t, err, broken, "%s, to standard output", what)
			torn := filepath.Join(t.TempDir(), "torn")
			must(t, os.WriteFile(torn, out.Bytes(), 0o600))
			if got, err := readExport(t, torn); err == nil {
				t.Errorf("%s: standard output is read as %d events", what, got)
			}
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	path := olderExport(t)
	if _, said, err := exported(t, stopped, "ndjson", path, exports(all, nil)); !errors.Is(err, context.Canceled) || said != "" {
		t.Errorf("stopped: err = %v, said %q", err, said)
	}
	holds(t, "stopped", path, "an older export")
}

// A name that is taken when the export is complete is left alone, and nothing beside it.
func TestExportThatCannotTakeItsNameLeavesNothing(t *testing.T) {
	for what, take := range map[string]func(path string) error{
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a file":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "export")
		_, said, err := exported(t, t.Context(), "ndjson", path, func(context.Context, string, *slog.Logger, func(ledger.Event) error) error {
			return take(path)
		})
		names, _ := filepath.Glob(filepath.Dir(path) + "/*")
		if err == nil || said != "" || len(names) != 1 {
			t.Errorf("err = %v, said %q; there are %q, want %s alone", err, said, names, what)
		}
	}
}

func TestExportSaysWhatItsReaderMustKnow(t *testing.T) {
	t.Parallel()
	gap := &ledger.Block{Slot: 12, ParentSlot: 10, Blockhash: toolHash(12)}
	_, said, err := exported(t, t.Context(), "ndjson", "-", exports(append(exportedEvents(), gap), nil))
	const want = "exported 2 accounts, 1 mints and 4 blocks up to slot 12\n" +
		"gaps in the ledger: 1; only file:PATH?gaps=allow reads the export\n"
	if err != nil || said != want {
		t.Errorf("said %q, want %q; %v", said, want, err)
	}

	keys := slices.Repeat([]ledger.Pubkey{ledger.Pubkey(bytes.Repeat([]byte{0xff}, 32))}, 1<<20)
	huge := &ledger.Block{Slot: 12, ParentSlot: 10, TransactionCount: 2}
	for range 2 {
		huge.AddTransaction(ledger.Transaction{Accounts: keys})
	}
	_, _, err = exported(t, t.Context(), "ndjson", "-", exports([]ledger.Event{huge}, nil))
	if err == nil || !regexp.MustCompile(`: an event at slot 12 takes a line of .*: use --format binary$`).MatchString(err.Error()) {
		t.Errorf("a block too long for a line: err = %v", err)
	}
}
