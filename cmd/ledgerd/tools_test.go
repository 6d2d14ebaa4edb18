package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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

// loggedUpdate is an update as the log has it.
type loggedUpdate struct {
	Seq     uint64
	Account struct {
		Pubkey   string
		Lamports uint64
		Owner    string
		Token    json.RawMessage // false where it is none
	}
	OwnerBefore  string `json:"owner_before"`
	WalletBefore string `json:"wallet_before"`
}

// isOf reports whether a wallet, or one of its token accounts, is updated.
func (u *loggedUpdate) isOf(wallet string) bool {
	var token struct{ Owner string }
	_ = json.Unmarshal(u.Account.Token, &token) // without one there is no owner
	return u.Account.Pubkey == wallet || token.Owner == wallet || u.WalletBefore == wallet
}

// decodeLines returns the objects among the lines of a text.
func decodeLines[T any](t *testing.T, text string) (all []T) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			var v T
			must(t, json.Unmarshal([]byte(line), &v))
			all = append(all, v)
		}
	}
	return all
}

// printedLine is a line of ledgerd sub.
type printedLine struct {
	Type, Pubkey  string
	Seq, Lamports uint64
}

// Tails of everything, of a program and of a wallet print each update that the log has of these, once and in order, though the node is killed
// again and again, and they are stopped and go on from their files.
func TestTailsPrintWhatTheLogHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var node *victim
	var to atomic.Pointer[string]
	start := func() {
		node = launch(t, "--data-dir", dir, "--source", "sim:accounts=300,tps=200,slot_time=16ms,fork_rate=0.2,skip_rate=0.1,finality=8",
			"--snapshot-interval", "0s").ready()
		host := hostOf(node.base)
		to.Store(&host)
	}
	start()
	door := newCutter(t, rand.New(rand.NewPCG(1, 1)), 0, 0, func() string { return *to.Load() })
	const wallet = "uApo33936ABSobviirURXfWTVi6BTFPDUfH76MmRXkG"
	wants := map[string]func(*loggedUpdate) bool{
		"": func(*loggedUpdate) bool { return true },
		"--program=" + tokenProgram: func(u *loggedUpdate) bool {
			return u.Account.Owner == tokenProgram || u.OwnerBefore == tokenProgram
		},
		"--wallet=" + wallet: func(u *loggedUpdate) bool { return u.isOf(wallet) },
	}
	printed := map[string]string{}
	for range 2 {
		tails := map[string]*running{}
		for what := range wants {
			args := []string{"sub", "--url", door.address(), "--output", "json", "--resume", filepath.Join(dir, "resume"+what)}
			if what != "" {
				args = append(args, what)
			}
			tails[what] = perform(t, args...)
		}
		for kill := range 2 {
			for what, tail := range tails {
				node.until("the tail of "+what+" goes on", func() bool {
					return strings.Count(tail.out.String(), "account_update") > 50*(kill+1)
				})
			}
			if kill == 0 {
				node.Kill()
				start()
			}
		}
		for what, tail := range tails {
			ledgertest.Equal(t, tail.stop(), exitOK, "the exit code of the tail of %q", what)
			printed[what] += tail.out.String()
		}
	}
	node.Kill()
	dump, said, _ := tool(t, "log", "dump", "--full", "--data-dir", dir)
	logged := decodeLines[loggedUpdate](t, dump)
	if len(logged) == 0 {
		t.Fatalf("the log is empty: %s", said)
	}
	for what, wanted := range wants {
		lines := decodeLines[printedLine](t, printed[what])
		first, last, starts := lines[0].Seq, lines[len(lines)-1].Seq, 0
		var got, want []string
		for _, l := range lines {
			switch {
			case l.Type == "start":
				starts++
			case l.Type == "account_update" && l.Seq > first:
				got = append(got, fmt.Sprint(l.Seq, l.Pubkey, l.Lamports))
			}
		}
		for _, u := range logged {
			if u.Seq > first && u.Seq <= last && wanted(&u) {
				want = append(want, fmt.Sprint(u.Seq, u.Account.Pubkey, u.Account.Lamports))
			}
		}
		ledgertest.Equal(t, starts, 1, "%q: starts", what)
		ledgertest.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "%q: what is printed", what)
		t.Logf("%q: %d updates", what, len(got))
	}
}
