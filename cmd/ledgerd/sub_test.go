package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fasthttp/websocket"

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

// forgetful starts a node that knows of no number, stands at 50, and then sends frames, with an error at their end. Of what a client says it
// takes three messages.
func forgetful(t *testing.T, frames ...string) *httptest.Server {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		say := func(text string) { _ = conn.WriteMessage(websocket.TextMessage, []byte(text)) } // who leaves is told nothing
		for {
			_, text, err := conn.ReadMessage()
			if err != nil {
				return
			}
			if strings.Contains(string(text), `"resume"`) {
				say(`{"type":"resync_required","id":2,"oldest_seq":40,"newest_seq":50}`)
				continue
			}
			say(`{"type":"pong","id":3,"slot":7,"seq":50}`)
			for _, f := range frames {
				say(f)
			}
			say(`{"type":"error","id":null,"error":"Invalid request parameters","details":"enough"}`)
		}
	}))
	t.Cleanup(node.Close)
	return node
}

const (
	toldUpdate = `{"type":"account_update","pubkey":"k\u009b","lamports":18446744073709551615,"slot":8,"seq":51,"owner":"o","commitment":"processed","timestamp":null}`
	toldEnd    = `{"type":"slot_end","slot":8,"seq":51}`
)

// A gap is told, and ends the tail where that is asked for; its file then stays as it is. What the node refuses ends it, too.
func TestATailTellsOfGaps(t *testing.T) {
	t.Parallel()
	node := forgetful(t, toldUpdate, `{"type":"rollback","from_slot":9,"to_slot":8,"seq":51}`, toldEnd)
	file := filepath.Join(t.TempDir(), "resume")
	args := []string{"sub", "--url", node.URL, "--resume", file}
	for _, tt := range []struct {
		kept  string // "": no file
		flag  string
		code  int
		says  string
		out   string
		after string
	}{
		{"", "--fail-on-gap", exitFailure, "tells nothing: status 400: Invalid request parameters: enough", "start,account_update,rollback", "51"},
		{"30\n", "--output=json", exitFailure, "a gap: the node does not hold any more what followed update 30; what is printed from here on follows 50\n", "start,account_update,rollback", "51"},
		{"30", "--fail-on-gap", exitGap, "ledgerd: the node does not hold any more what followed update 30; it stands at 50\n", "", "30"},
		{"-1", "--output=json", exitUsage, "does not hold the number of an update", "", "-1"},
		{strings.Repeat("1", 100), "--output=json", exitUsage, "--resume: ", "", strings.Repeat("1", 100)},
	} {
		_ = os.Remove(file) // it may not be there
		if tt.kept != "" {
			must(t, os.WriteFile(file, []byte(tt.kept), 0o600))
		}
		var kinds []string
		for _, l := range decodeLines[printedLine](t, toolSays(t, tt.code, tt.says, append(args, "--output=json", tt.flag)...)) {
			kinds = append(kinds, l.Type)
			if l.Type == "account_update" && l.Lamports != 18446744073709551615 {
				t.Errorf("%+v", l)
			}
		}
		ledgertest.Equal(t, strings.Join(kinds, ","), tt.out, "what is printed after %q", tt.kept)
		ledgertest.Equal(t, strings.TrimSpace(string(readFile(t, file))), tt.after, "what is kept after %q", tt.kept)
	}
	const table = `        SLOT            SEQ ACCOUNT                                                  LAMPORTS OWNER                                       
           8             51 k�                                           18446744073709551615 o                                           
           8             51 undoes the blocks from 9 down to this one
`
	ledgertest.Equal(t, toolSays(t, exitFailure, "enough", "sub", "--url", node.URL), table, "the table")
	toolSays(t, exitFailure, "cannot keep how far that is", "sub", "--url", node.URL, "--resume", filepath.Join(file+"s", "none"))
	toolSays(t, exitUsage, "is not the address of a node", "sub", "--url", "127.0.0.1:8080")
}

// A reader that has enough, as head has, ends a tail with exit code 0, and so does a full disk with another one. A node whose messages nobody reads
// any more, as when the same Ctrl-C has ended tee, goes on, and stops as ever. A tool whose terminal is closed stops as it does at Ctrl-C.
func TestReadersThatEnd(t *testing.T) {
	t.Parallel()
	many := make([]string, 4000) // more than a pipe has room for
	for i := range many {
		many[i] = toldUpdate
	}
	node := forgetful(t, append(many, toldEnd)...)
	binary, err := os.Executable()
	must(t, err)
	for script, want := range map[string]int{
		`"$0" sub --url "$1" | head -n 1; exit "${PIPESTATUS[0]}"`: exitOK,
		`"$0" sub --url "$1" >/dev/full`:                           exitFailure,
		`"$0" serve --listen 127.0.0.1:0 --ops-listen "" --data-dir "$2" >"$3" 2>&1 & head -n 1 "$3"; kill $!; wait $!`: exitOK,
		`"$0" log verify --config "$3" & exec 3>"$3"; kill -HUP $!; wait $!`:                                            exitFailure,
	} {
		c := exec.CommandContext(t.Context(), "bash", "-c", script, binary, node.URL, t.TempDir(), newPipe(t, "messages"))
		c.Env = append(os.Environ(), asProgram+"=1")
		said, err := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != want || strings.Contains(string(said), "enough") {
			t.Errorf("%s: exit code %d, want %d: %v\n%s", script, code, want, err, said)
		}
	}
}
