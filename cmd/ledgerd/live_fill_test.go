package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	Lamports ledger.Lamports
	Details  string
}

func askAccount(t *testing.T, url string) (a asked) {
	t.Helper()
	var err error
	a.answer, err = ask(client, url)
	must(t, err)
	must(t, json.Unmarshal([]byte(a.body), &a))
	return a
}

// Accounts that a node does not hold are fetched from the live node that it follows, over JSON-RPC or beside its stream, while the ledger goes on: each
// answer is what the account is at the slot of the answer. Then the live node goes away.
func TestAccountsAreFetchedFromALiveNode(t *testing.T) {
	t.Parallel()
	l, err := nodetest.Simulated("seed=5,accounts=150,tps=40,slot_time=0,slots=400", 8)
	must(t, err)
	for name, spec := range map[string]func(*nodetest.Node) string{
		"rpc":    func(n *nodetest.Node) string { return "rpc:" + n.CallsURL() + "?accounts=none" },
		"geyser": func(n *nodetest.Node) string { return "geyser:" + n.StreamURL() + "?rpc=" + n.CallsURL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, l, nodetest.Config{})
			defer n.Close()
			n.Advance(10)
			playing, pause := context.WithCancel(t.Context())
			var player sync.WaitGroup
			player.Go(func() { n.Run(playing, 100*time.Millisecond) })
			defer player.Wait()
			defer pause()

			r := launch(t, "--data-dir", t.TempDir(), "--source", spec(n), "--fill", "on-demand", "--rate-limit-exempt", "127.0.0.1").ready()
			ask := func(key ledger.Pubkey) (a asked) { // which may take longer on a busy machine than the node waits for it
				for given := time.Now().Add(patience); a.status == 0 || a.status == http.StatusServiceUnavailable && time.Now().Before(given); {
					a = askAccount(t, r.base+"/account/"+key.String())
				}
				return a
			}
			held := ledger.Pubkey{}
			for _, w := range l.Base.Accounts[:40] {
				a := ask(w.Pubkey)
				slot, _ := strconv.ParseUint(a.header.Get("X-Ledger-Slot"), 10, 64)
				switch want := l.Accounts(ledger.Slot(slot))[w.Pubkey]; {
				case want == nil && a.status != http.StatusNotFound, want != nil && (a.status != http.StatusOK || a.Lamports != want.Lamports):
					t.Errorf("%v is answered %d %s, want %+v", w.Pubkey, a.status, a.body, want)
				case want != nil:
					held = w.Pubkey
				}
			}
			ledgertest.Equal(t, fmt.Sprint(ask(ledger.Pubkey{9}).status, ask(ledger.Pubkey{9}).Details), "404account not found", "an account that does not exist")
			fills := strings.HasPrefix(spec(n), "geyser:")
			ledgertest.Equal(t, r.metric("ledgerd_source_connected"), 1, "whether it is connected")
			ledgertest.Equal(t, r.metric("ledgerd_upstream_peers"), 1, "how many nodes it is connected to")
			ledgertest.Equal(t, r.metric("ledgerd_source_calls_connected") == 1, fills, "whether the figures of calls beside the stream are there")

			pause()
			player.Wait()
			must(t, n.Close())
			gone := askAccount(t, r.base+"/account/"+ledger.Pubkey{8}.String())
			if gone.status != http.StatusServiceUnavailable || gone.header.Get("Retry-After") == "" || !strings.Contains(gone.Details, "upstream node") {
				t.Errorf("an account that is not held, without the node: %+v", gone)
			}
			const errors = `ledgerd_source_calls_errors_total{kind="%s"}`
			if fills && r.metric(fmt.Sprintf(errors, "dial"))+r.metric(fmt.Sprintf(errors, "closed")) == 0 {
				t.Error("no error is counted of the calls to a node that is gone")
			}
			ledgertest.Equal(t, askAccount(t, r.base+"/account/"+held.String()).status, http.StatusOK, "an account that is held, without the node: status")
		})
	}
}
