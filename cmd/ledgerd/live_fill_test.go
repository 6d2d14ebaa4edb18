package main

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
)

// asked is the answer to a question about one account.
type asked struct {
	answer
	Lamports       ledger.Lamports
	Error, Details string
}

func askAccount(t *testing.T, url string) (a asked) {
	t.Helper()
	var err error
	a.answer, err = ask(client, url)
	must(t, err)
	must(t, json.Unmarshal([]byte(a.body), &a))
	return a
}

// TestAccountsAreFetchedFromALiveNode follows a node over JSON-RPC and asks for every account it has,
// many at once and while its ledger goes on: each answer is what the account is at the slot of the
// answer. Then the node goes away.
func TestAccountsAreFetchedFromALiveNode(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]func(*nodetest.Node) string{
		"rpc":    func(n *nodetest.Node) string { return "rpc:" + n.CallsURL() + "?accounts=none" },
		"geyser": func(n *nodetest.Node) string { return "geyser:" + n.StreamURL() + "?rpc=" + n.CallsURL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fetchFromALiveNode(t, spec)
		})
	}
}

// askPatiently asks for an account until it is fetched, which may take longer on a busy machine than the node waits for it.
func askPatiently(t *testing.T, url string) (a asked) {
	for given := time.Now().Add(patience); ; {
		if a = askAccount(t, url); a.status != http.StatusServiceUnavailable || time.Now().After(given) {
			return a
		}
	}
}

func fetchFromALiveNode(t *testing.T, spec func(*nodetest.Node) string) {
	l, err := nodetest.Simulated("seed=5,accounts=150,tps=40,slot_time=0,slots=400", nodetest.Plan{Finality: 8})
	must(t, err)
	n := startNode(t, l, nodetest.Config{})
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
				answers[i] = askPatiently(t, url)
			}
		})
	}
	clients.Wait()
	truth := make(map[string]map[ledger.Pubkey]*ledger.AccountWrite)
	for i, a := range answers {
		slot := a.header.Get("X-Ledger-Slot")
		if truth[slot] == nil {
			number, err := strconv.ParseUint(slot, 10, 64)
			must(t, err)
			truth[slot] = l.Accounts(ledger.Slot(number))
		}
		k := keys[i%len(keys)]
		want := truth[slot][k]
		switch {
		case want == nil && (a.status != 404 || !strings.HasPrefix(a.Details, "account ")):
			t.Errorf("%v at slot %s: %+v, want 404", k, slot, a)
		case want != nil && (a.status != 200 || a.Lamports != want.Lamports):
			t.Errorf("%v at slot %s: %+v, want %d lamports", k, slot, a, want.Lamports)
		}
	}
	if a := askPatiently(t, r.base+"/account/"+unknown.String()); a.status != 404 || a.Details != "account not found" {
		t.Errorf("an account that does not exist: %+v", a)
	}
	_, metrics := get(t, r.ops+"/metrics")
	if !strings.Contains(string(metrics), "\nledgerd_source_connected 1\n") {
		t.Error("the source is not told to be connected")
	}
	fills := strings.HasPrefix(spec(n), "geyser:")
	told := strings.Contains(string(metrics), "\nledgerd_source_calls_connected 1\n")
	ledgertest.Equal(t, told, fills, "whether the figures of calls beside the stream are there")

	pause()
	player.Wait()
	must(t, n.Close())
	gone := askAccount(t, r.base+"/account/"+late.String())
	if _, metrics := get(t, r.ops+"/metrics"); fills &&
		!regexp.MustCompile(`\nledgerd_source_calls_errors_total\{kind="(dial|closed)"\} [1-9]`).Match(metrics) {
		t.Error("no error is counted of the calls to a node that is gone")
	}
	if gone.status != http.StatusServiceUnavailable || gone.Error != "Service unavailable" || gone.header.Get("Retry-After") == "" ||
		!strings.Contains(gone.Details, "upstream node") {
		t.Errorf("an account that is not held, without the node: %+v", gone)
	}
	held := slices.IndexFunc(answers[:len(keys)], func(a asked) bool { return a.status == http.StatusOK })
	a := askAccount(t, r.base+"/account/"+keys[held].String())
	ledgertest.Equal(t, a.status, http.StatusOK, "an account that is held, without the node: status of %+v", a)
}
