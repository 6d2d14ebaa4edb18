package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
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

// readExport returns the events that the file source reads from a file, each encoded.
func readExport(t *testing.T, path string) (encoded []string, err error) {
	t.Helper()
	source, err := file.Open(path, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	err = source.Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
		encoded = append(encoded, string(codec.AppendEvent(nil, e)))
		return nil
	})
	return encoded, err
}

func TestExportIsReadBackAsItWas(t *testing.T) {
	for _, format := range []string{"ndjson", "binary"} {
		path := filepath.Join(t.TempDir(), "export")
		if err := os.WriteFile(path, []byte("an older export"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut, standard bytes.Buffer
		c := exportCommand{DataDir: newDataDir(t, t.TempDir()), Format: format, Output: path}
		if err := c.run(t.Context(), &streams{&out, &errOut}, exports(exportedEvents(), nil)); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if want := "exported 2 accounts, 1 mints and 3 blocks up to slot 9\n"; errOut.String() != want || out.Len() > 0 {
			t.Errorf("%s: said %q and %q, want %q", format, errOut.String(), out.String(), want)
		}
		got, err := readExport(t, path)
		if err != nil || len(got) != len(exportedEvents()) {
			t.Fatalf("%s: read %d events, err = %v", format, len(got), err)
		}
		for i, e := range exportedEvents() {
			if got[i] != string(codec.AppendEvent(nil, e)) {
				t.Errorf("%s: event %d: %+v is read as %x", format, i, e, got[i])
			}
		}
		if names, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(names) != 1 {
			t.Errorf("%s: there are %q", format, names)
		}

		c.Output = "-"
		if err := c.run(t.Context(), &streams{&standard, &errOut}, exports(exportedEvents(), nil)); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, standard.Bytes()) {
			t.Errorf("%s: standard output differs from the file, err = %v", format, err)
		}
	}
}

// Whenever an export fails, no file of its name appears, one that was there stays, and what
// went to standard output is refused.
func TestFailedExportNeverLooksComplete(t *testing.T) {
	broken := errors.New("broken")
	all := exportedEvents()
	for _, format := range []string{"ndjson", "binary"} {
		for n := range len(all) + 1 {
			path := filepath.Join(t.TempDir(), "export")
			if err := os.WriteFile(path, []byte("an older export"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := exportCommand{DataDir: newDataDir(t, t.TempDir()), Format: format, Output: path}
			var out, errOut bytes.Buffer
			err := c.run(t.Context(), &streams{&out, &errOut}, exports(all[:n], broken))
			if !errors.Is(err, broken) || err.Error() != "cannot export "+c.DataDir+": broken" || errOut.Len() > 0 {
				t.Errorf("%s, after %d events: err = %v, said %q", format, n, err, errOut.String())
			}
			names, _ := filepath.Glob(filepath.Dir(path) + "/*")
			if content, err := os.ReadFile(path); err != nil || string(content) != "an older export" || len(names) != 1 {
				t.Errorf("%s, after %d events: %q has %q, err = %v", format, n, names, content, err)
			}

			c.Output = "-"
			out.Reset()
			if err := c.run(t.Context(), &streams{&out, &errOut}, exports(all[:n], broken)); !errors.Is(err, broken) {
				t.Errorf("%s, after %d events, to standard output: err = %v", format, n, err)
			}
			torn := filepath.Join(t.TempDir(), "torn")
			if err := os.WriteFile(torn, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := readExport(t, torn); err == nil {
				t.Errorf("%s, after %d events: standard output is read as %d events", format, n, len(got))
			}
		}
	}
}

func TestInterruptedExportFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "export")
	c := exportCommand{DataDir: newDataDir(t, t.TempDir()), Format: "ndjson", Output: path}
	var out, errOut bytes.Buffer
	if err := c.run(ctx, &streams{&out, &errOut}, exports(exportedEvents(), nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is an export, err = %v", err)
	}
}

// A name that is taken when the export is complete is left alone, and nothing beside it.
func TestExportThatCannotTakeItsNameLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "export")
	taken := func(context.Context, string, *slog.Logger, func(ledger.Event) error) error {
		return os.Mkdir(path, 0o700)
	}
	c := exportCommand{DataDir: newDataDir(t, t.TempDir()), Format: "ndjson", Output: path}
	var out, errOut bytes.Buffer
	if err := c.run(t.Context(), &streams{&out, &errOut}, taken); err == nil || errOut.Len() > 0 {
		t.Errorf("err = %v, said %q", err, errOut.String())
	}
	if names, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(names) != 1 {
		t.Errorf("there are %q, want the folder alone", names)
	}
}

func TestExportSaysWhatItsReaderMustKnow(t *testing.T) {
	events := append(exportedEvents(), &ledger.Block{Slot: 12, ParentSlot: 10, Blockhash: toolHash(12)})
	var out, errOut bytes.Buffer
	c := exportCommand{DataDir: newDataDir(t, t.TempDir()), Format: "ndjson", Output: "-"}
	if err := c.run(t.Context(), &streams{&out, &errOut}, exports(events, nil)); err != nil {
		t.Fatal(err)
	}
	if want := "gaps in the ledger: 1; only file:PATH?gaps=allow reads the export\n"; !strings.HasSuffix(errOut.String(), want) {
		t.Errorf("said %q, want %q", errOut.String(), want)
	}

	keys := make([]ledger.Pubkey, 1<<20)
	huge := &ledger.Block{Slot: 12, ParentSlot: 10, TransactionCount: 2}
	for i := range keys {
		keys[i] = ledger.Pubkey(bytes.Repeat([]byte{0xff}, 32))
	}
	for range 2 {
		huge.AddTransaction(ledger.Transaction{Accounts: keys})
	}
	err := c.run(t.Context(), &streams{&out, &errOut}, exports([]ledger.Event{huge}, nil))
	if err == nil || !strings.Contains(err.Error(), ": an event at slot 12 takes a line of ") || !strings.HasSuffix(err.Error(), ": use --format binary") {
		t.Errorf("a block too long for a line: err = %v", err)
	}
}

func TestExportSaysWhereItCannotWrite(t *testing.T) {
	dir := newDataDir(t, t.TempDir())
	for name, output := range map[string]string{"no such folder": filepath.Join(dir, "no", "export"), "a folder": dir} {
		before := listing(t, dir)
		out, errors, code := tool(t, "export", "--data-dir", dir, "--output", output)
		if code != exitFailure || !strings.HasPrefix(errors, "ledgerd: cannot write the export: open "+output) || strings.Count(errors, "\n") != 1 || out != "" {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errors)
		}
		if listing(t, dir) != before {
			t.Errorf("%s: the data directory changed", name)
		}
	}
}
