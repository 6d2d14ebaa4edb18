package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

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
