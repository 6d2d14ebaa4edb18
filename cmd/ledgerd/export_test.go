package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/file"
)

// exportedEvents is what the fake ledger of these tests consists of: two accounts, a mint, and four blocks, before the last of which one is missing.
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
		block(9, 6, ledger.Processed), &ledger.SlotStatus{Slot: 9, Status: ledger.StatusConfirmed}, block(12, 10, ledger.Processed),
	}
}

// What was written before an export failed is refused by its reader, wherever that was. All of it has what its summary counts.
func TestFailedExportIsRefusedByItsReader(t *testing.T) {
	broken := errors.New("broken")
	all := exportedEvents()
	for _, binary := range []bool{false, true} {
		for n := range len(all) + 1 {
			var out bytes.Buffer
			x := &exportWriter{binary: binary}
			err := x.writeAll(&out, func() error {
				for _, e := range all[:n] {
					must(t, x.write(e))
				}
				return broken
			})
			ledgertest.ErrorIs(t, err, broken, "an export that failed after %d events", n)
			torn := filepath.Join(t.TempDir(), "torn")
			must(t, os.WriteFile(torn, out.Bytes(), 0o600))
			source, err := file.Open(torn, quietLog())
			must(t, err)
			if source.Run(t.Context(), nil, func(context.Context, ledger.Event) error { return nil }) == nil {
				t.Errorf("binary %v: what was written of %d events is read", binary, n)
			}
			if counted := []int{x.accounts, x.mints, x.blocks, x.gaps, int(x.slot)}; n == len(all) {
				ledgertest.Equal(t, counted, []int{2, 1, 4, 1, 12}, "accounts, mints, blocks, gaps and the newest slot")
			}
		}
	}
	huge := &ledger.Block{Slot: 12, ParentSlot: 10, TransactionCount: 1}
	huge.AddTransaction(ledger.Transaction{Accounts: slices.Repeat([]ledger.Pubkey{toolKey("a")}, 2<<20)})
	ledgertest.ErrorSays(t, new(exportWriter).write(huge), "use --format binary", "a block that is too long for a line")
}

// An export that fails, or whose name was taken meanwhile, leaves what has its name as it is, and nothing beside it.
func TestExportThatFailsLeavesNothing(t *testing.T) {
	const older = "an older export"
	for what, tt := range map[string]struct {
		force bool
		take  func(path string) error // before it fails or ends
	}{
		"a failure": {true, func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(older), 0o600), errors.New("broken"))
		}},
		"a file":   {false, func(path string) error { return os.WriteFile(path, []byte(older), 0o600) }},
		"a folder": {false, func(path string) error { return os.Mkdir(path, 0o700) }},
	} {
		path := filepath.Join(t.TempDir(), "export")
		c := exportCommand{Output: path, Force: tt.force}
		err := c.create(nil, func(out io.Writer) error {
			_, err := io.WriteString(out, "more than nothing")
			return errors.Join(err, tt.take(path))
		})
		names, _ := filepath.Glob(filepath.Dir(path) + "/*")
		if content, isFile := os.ReadFile(path); err == nil || len(names) != 1 || isFile == nil && string(content) != older {
			t.Errorf("%s: err = %v; there are %q, with %q", what, err, names, content)
		}
	}
}
