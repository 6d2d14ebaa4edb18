package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/engine/ledger"
)

// tiny runs a scenario of the data with so few accounts that nothing takes long, beside redis
// where that is there. The scenarios check by themselves what the servers hold.
func tiny(t *testing.T, s Scenario, scale float64) *Result {
	t.Helper()
	return run(t, s, Env{Rounds: 2, Duration: 20 * time.Millisecond, Scale: scale, Peers: true})
}

// compared checks that there are goals for redis exactly where it was measured, and that a
// reader is told where it was not.
func compared(t *testing.T, r *Result) {
	t.Helper()
	rows, goals, notes := 0, 0, 0
	for _, row := range r.Rows {
		if strings.HasPrefix(row.Subject, "redis") {
			rows++
		}
	}
	for _, g := range r.Goals {
		if strings.Contains(g.What, "redis") && g.Value > 0 {
			goals++
		}
	}
	for _, n := range r.Notes {
		if strings.HasPrefix(n, "redis was left out: ") {
			notes++
		}
	}
	if rows > 0 != (goals > 0) || rows > 0 == (notes > 0) || notes > 1 {
		t.Errorf("redis has %d rows and %d goals, and %d times it is said to be absent", rows, goals, notes)
	}
}

func TestIngestReadsAllOfBothFiles(t *testing.T) {
	t.Parallel()
	result := tiny(t, Scenario{Name: "ingest", Run: func(ctx context.Context, env *Env) (*Result, error) {
		return runIngest(ctx, env, 50)
	}}, 0.4)
	for _, subject := range []string{fromEvents, fromLines} {
		if result.median(subject, "updates") <= 0 || result.median(subject, "fsyncs") <= 0 {
			t.Errorf("%s: %+v", subject, result.Row(subject))
		}
	}
	compared(t, result)
}

func TestRecoverAnswersRightAfterAStart(t *testing.T) {
	t.Parallel()
	result := tiny(t, Recover(3000)[0], 1)
	for _, subject := range []string{"ledgerd, 30 % tokens", "ledgerd, 50 % tokens"} {
		if result.median(subject, "accounts") <= 0 {
			t.Errorf("%s: %+v", subject, result.Row(subject))
		}
	}
	compared(t, result)
}

func TestMemoryIsReadInBothStates(t *testing.T) {
	t.Parallel()
	result := tiny(t, Memory(6000)[0], 0.5)
	for _, state := range memoryStates {
		if row := result.Row("ledgerd, " + state); row.figure("resident").Median() <= row.figure("heap, with garbage").Median() {
			t.Errorf("%s: %+v", state, row)
		}
	}
	compared(t, result)
}

func TestTransactionsAreHeldInBothStates(t *testing.T) {
	t.Parallel()
	result := run(t, Scenario{Name: "transactions", Run: func(ctx context.Context, env *Env) (*Result, error) {
		return runTransactions(ctx, env, 600)
	}}, Env{Rounds: 1, Duration: 20 * time.Millisecond, Scale: 0.02})
	for _, state := range memoryStates {
		if row := result.Row(state); row.figure("heap, with garbage, more than without").Median() <= 0 || row.figure("all that is resident").Median() <= 0 {
			t.Errorf("%s: %+v", state, row)
		}
	}
	if len(result.Goals) != 2 || !strings.Contains(result.Goals[0].What, "13,000 transactions") {
		t.Errorf("goals: %+v", result.Goals)
	}
}

func TestRedisIsLeftOutByNameWhereItIsAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	result := new(Result)
	env := &Env{Peers: true, Progress: io.Discard}
	for range 2 {
		if r, err := startRedis(t.Context(), env, result, t.TempDir()); r != nil || err != nil {
			t.Errorf("started %v, %v", r, err)
		}
	}
	if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "the Debian package redis-server") {
		t.Errorf("notes: %q", result.Notes)
	}
}

// A server that reads the lines must hold the same as one that reads the events: the
// hashes of their states are compared.
func TestLinesSayWhatTheEventFileSays(t *testing.T) {
	c := feed.Config{Accounts: 400, Updates: 150, Tokens: 40, Finality: dataFinality}
	var events, lines bytes.Buffer
	f, err := feed.New(&events, c)
	for i := 0; i < 5 && err == nil; i++ {
		_, err = f.Block()
	}
	if err == nil {
		err = writeLines(&lines, bytes.NewReader(events.Bytes()))
	}
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for name, content := range map[string][]byte{"events": events.Bytes(), "lines": lines.Bytes()} {
		states = append(states, stateAfter(t, name, content, f.Newest()))
	}
	if states[0] != states[1] || states[0] == "" {
		t.Errorf("the two files leave different states:\n%s\n%s", states[0], states[1])
	}
}

// stateAfter returns what a server says of its state when it has read a file.
func stateAfter(t *testing.T, name string, content []byte, newest ledger.Slot) string {
	t.Helper()
	env := &Env{Ledgerd: program(t, "ledgerd"), Dir: t.TempDir(), Progress: t.Output()}
	path := filepath.Join(env.Dir, name)
	err := writeFile(path, func(w io.Writer) error { _, err := w.Write(content); return err })
	if err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(env.Dir, "held")
	r, err := keep(t.Context(), env, held, path, newest)
	if err == nil {
		err = r.Stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(env.Ledgerd, "snapshot", "verify", "--data-dir", held).Output()
	if err != nil {
		t.Fatal(err)
	}
	return stateHash.FindString(string(said))
}

var stateHash = regexp.MustCompile(`400 accounts.*state hash [0-9a-f]{16,}`)

func TestAWrongAnswerIsNoRecovery(t *testing.T) {
	a := (feed.Config{Accounts: 10, Tokens: 100}).Account(3, 77)
	const form = `{"pubkey":"%s","lamports":%d,"owner":"%s","executable":false,"rent_epoch":0}`
	for name, tt := range map[string]struct {
		body string
		well bool
	}{
		"right":         {fmt.Sprintf(form, a.Pubkey, 77, a.Owner), true},
		"old lamports":  {fmt.Sprintf(form, a.Pubkey, 76, a.Owner), false},
		"another":       {fmt.Sprintf(form, feed.Key(4), 77, a.Owner), false},
		"another owner": {fmt.Sprintf(form, a.Pubkey, 77, a.Pubkey), false},
		"no account":    {"nothing", false},
	} {
		if err := isAccount([]byte(tt.body), a); (err == nil) != tt.well {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}
