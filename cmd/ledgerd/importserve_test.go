package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ledgerd/cmd/ledgerd/internal/testnode"
	"ledgerd/engine/ledger"
)

// until asks again, after what is to be done in between, until an answer holds all the words.
func until(t *testing.T, url string, between func(), words ...string) {
	t.Helper()
	for t.Context().Err() == nil {
		_, body := get(t, url)
		missing := false
		for _, w := range words {
			missing = missing || !strings.Contains(string(body), w)
		}
		if !missing {
			return
		}
		between()
		time.Sleep(5 * time.Millisecond)
	}
}

// A node that imported an archive newer than the node it is to follow answers from the archive meanwhile,
// and says that it waits.
func TestImportIsServedWhileTheLiveNodeIsBehind(t *testing.T) {
	t.Parallel()
	l, err := testnode.Simulated("seed=3,accounts=150,tps=20,slot_time=0,slots=40", testnode.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	blocks := l.Main()
	at := blocks[len(blocks)/2]
	state := l.StateAt(at.Slot)
	archive := archiveOfNode(t, l, at)
	for name, spec := range map[string]func(n *testnode.Node) string{
		"stream":   func(n *testnode.Node) string { return "geyser:" + n.StreamURL() + "?data=full" },
		"JSON-RPC": func(n *testnode.Node) string { return "rpc:" + n.CallsURL() },
	} {
		t.Run(name, func(t *testing.T) {
			live := startNode(t, l, testnode.Config{})
			defer live.Close()
			live.Advance(8)
			dir := filepath.Join(t.TempDir(), "data")
			if _, errors, code := tool(t, "import", "--archive", archive, "--data-dir", dir); code != exitOK {
				t.Fatalf("import: exit %d, %s", code, errors)
			}
			r := begin(t, "--data-dir", dir, "--source", spec(live)).reach(t)
			heard := 0
			until(t, r.ops+"/readyz", func() { // a stream tells of slots as they come, to those who listen
				if n := live.Tally().Subscriptions; n > heard && live.Tip(ledger.Processed)+4 < at.Slot {
					heard = n
					live.Advance(3)
				}
			}, fmt.Sprintf("no block has come since the start, reads are answered from the import of slot %d: the node is at slot", at.Slot),
				fmt.Sprintf("behind slot %d that is held here", at.Slot))
			account := state.Accounts[0]
			answer, err := http.Get(r.base + "/account/" + account.Pubkey.String() + "/balance")
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK || answer.Header.Get("X-Ledger-Slot") != fmt.Sprint(at.Slot) {
				t.Errorf("an account of the archive: %d, X-Ledger-Slot %q", answer.StatusCode, answer.Header.Get("X-Ledger-Slot"))
			}
			for slot, want := range map[ledger.Slot]string{at.Slot: "slot not indexed", at.Slot + 1: "slot not yet produced"} {
				if status, body := get(t, fmt.Sprint(r.base, "/blocks/", slot)); status != http.StatusNotFound || !strings.Contains(string(body), want) {
					t.Errorf("block %d: %d %s, want %s", slot, status, body, want)
				}
			}
			until(t, r.ops+"/metrics", func() {}, fmt.Sprintf("ledgerd_slot{commitment=\"processed\"} %d\n", at.Slot), "ledgerd_healthy 0")
			live.Advance(40)
			until(t, r.ops+"/readyz", func() {}, `"status":"ready"`)
			r.stop()
		})
	}
}
