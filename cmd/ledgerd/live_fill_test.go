package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/cmd/ledgerd/internal/testnode"
	"ledgerd/engine/ledger"
)

// asked is the answer to a question about one account.
type asked struct {
	status     int
	slot       ledger.Slot
	retryAfter string
	body       struct {
		Lamports       ledger.Lamports
		Owner          string
		Error, Details string
	}
}

func askAccount(t *testing.T, url string) (a asked) {
	t.Helper()
	resp, err := client.Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, &a.body)
	}
	if err != nil {
		t.Fatalf("%s: %s: %v", url, body, err)
	}
	slot, _ := strconv.ParseUint(resp.Header.Get("X-Ledger-Slot"), 10, 64)
	a.status, a.slot, a.retryAfter = resp.StatusCode, ledger.Slot(slot), resp.Header.Get("Retry-After")
	return a
}

// TestAccountsAreFetchedFromALiveNode follows a node over JSON-RPC and asks for every account it has,
// many at once and while its ledger goes on: each answer is what the account is at the slot of the
// answer. Then the node goes away.
func TestAccountsAreFetchedFromALiveNode(t *testing.T) {
	for name, spec := range map[string]func(*testnode.Node) string{
		"rpc":    func(n *testnode.Node) string { return "rpc:" + n.CallsURL() + "?accounts=none" },
		"geyser": func(n *testnode.Node) string { return "geyser:" + n.StreamURL() + "?rpc=" + n.CallsURL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fetchFromALiveNode(t, spec)
		})
	}
}

func fetchFromALiveNode(t *testing.T, spec func(*testnode.Node) string) {
	l, err := testnode.Simulated("seed=5,accounts=150,tps=40,slot_time=0,slots=400", testnode.Plan{Finality: 8})
	must(t, err)
	n := startNode(t, l, testnode.Config{})
	defer n.Close()
	n.Advance(10)
	playing, pause := context.WithCancel(t.Context())
	var player sync.WaitGroup
	player.Go(func() { n.Run(playing, 100*time.Millisecond) })
	defer player.Wait()
	defer pause()

	r := start(t, "--data-dir", t.TempDir(), "--source", spec(n), "--fill", "on-demand", "--rate-limit-exempt", "127.0.0.1")
	unknown, late := ledger.Pubkey{9, 9, 9}, ledger.Pubkey{8, 8, 8}
	keys := []ledger.Pubkey{unknown}
	for i := range l.Base.Accounts {
		keys = append(keys, l.Base.Accounts[i].Pubkey)
	}
	answers := make([]asked, 2*len(keys))
	var clients sync.WaitGroup
	const crowd = 16
	for c := range crowd {
		clients.Go(func() {
			for i := c; i < len(answers); i += crowd {
				url := r.base + "/account/" + keys[i%len(keys)].String()
				if i >= len(keys) {
					url += "/balance"
				}
				given := time.Now().Add(patience)
				for answers[i] = askAccount(t, url); answers[i].status == http.StatusServiceUnavailable && time.Now().Before(given); {
					answers[i] = askAccount(t, url) // a busy machine may take longer than a fetch is waited for
				}
			}
		})
	}
	clients.Wait()
	truth := make(map[ledger.Slot]map[ledger.Pubkey]*ledger.AccountWrite)
	for i, a := range answers {
		if truth[a.slot] == nil {
			truth[a.slot] = l.Accounts(a.slot)
		}
		k := keys[i%len(keys)]
		want := truth[a.slot][k]
		switch {
		case want == nil && (a.status != 404 || !strings.HasPrefix(a.body.Details, "account ")):
			t.Errorf("%v at slot %d: %+v, want 404", k, a.slot, a)
		case want != nil && (a.status != 200 || a.body.Lamports != want.Lamports):
			t.Errorf("%v at slot %d: %+v, want %d lamports", k, a.slot, a, want.Lamports)
		}
	}
	if a := askAccount(t, r.base+"/account/"+unknown.String()); a.status != 404 || a.body.Details != "account not found" {
		t.Errorf("an account that does not exist: %+v", a)
	}
	_, metrics := get(t, r.ops+"/metrics")
	if !strings.Contains(string(metrics), "\nledgerd_source_connected 1\n") {
		t.Error("the source is not told to be connected")
	}
	fills := strings.HasPrefix(spec(n), "geyser:")
	if fills != strings.Contains(string(metrics), "\nledgerd_source_calls_connected 1\n") {
		t.Errorf("the figures of calls beside the stream are there: %v, want %v", !fills, fills)
	}

	pause()
	player.Wait()
	must(t, n.Close())
	gone := askAccount(t, r.base+"/account/"+late.String())
	if _, metrics := get(t, r.ops+"/metrics"); fills &&
		!regexp.MustCompile(`\nledgerd_source_calls_errors_total\{kind="(dial|closed)"\} [1-9]`).Match(metrics) {
		t.Error("no error is counted of the calls to a node that is gone")
	}
	if gone.status != http.StatusServiceUnavailable || gone.body.Error != "Service unavailable" || gone.retryAfter == "" ||
		!strings.Contains(gone.body.Details, "upstream node") {
		t.Errorf("an account that is not held, without the node: %+v", gone)
	}
	for i := range answers[:len(keys)] {
		if answers[i].status == 200 {
			if a := askAccount(t, r.base+"/account/"+keys[i].String()); a.status != 200 {
				t.Errorf("an account that is held, without the node: %+v", a)
			}
			break
		}
	}
}
