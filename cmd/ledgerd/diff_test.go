package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// Two nodes of one ledger are equal, over however many shards. Of two that differ in one account, or in one mint, that one is told; of two
// that lack one, which of them holds it. Nodes of other ledgers differ, too, and what tells no state cannot be compared.
func TestDiffTellsTheFirstDifference(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const source = "sim:seed=3,accounts=100,slot_time=0,slots=40"
	first := start(t, "--data-dir", folder+"/sim", "--source", source)
	first.ending(t)
	first.stop()
	ledger, _, _ := tool(t, "export", "--data-dir", folder+"/sim", "--quiet")
	// The first line has all accounts at the finalized block, in the order of their keys, and mints apart from them.
	base, _, _ := strings.Cut(ledger, "\n")
	accounts := regexp.MustCompile(`\{"pubkey":"(\w+)","lamports":\d+,"owner":[^{}]*\}`).FindAllStringSubmatch(base, -1)
	at := accounts[len(accounts)/2]
	account, key := at[0], at[1]
	mint := regexp.MustCompile(`\{"pubkey":"(\w+)","mint":\{"decimals":(\d+)`).FindStringSubmatch(base)
	node := func(name, content string) string {
		file := filepath.Join(folder, name)
		must(t, os.WriteFile(file, []byte(content), 0o600))
		r := start(t, "--data-dir", file+".data", "--source", "file:"+file, "--shards", fmt.Sprint(len(name)))
		r.ending(t)
		return r.ops
	}
	whole := node("whole", ledger)
	other := regexp.MustCompile(`"lamports":(\d+)`).ReplaceAllString(account, `"lamports":7$1`)
	for name, tt := range map[string]struct {
		node string
		code int
		out  string // a pattern
		says string
	}{
		"equal":   {node("b", ledger), exitOK, `^equal at slot 7: state hash [0-9a-f]{64}\n$`, ""},
		"changed": {node("cc", strings.Replace(ledger, account, other, 1)), exitFailure, `the first difference, at slot 7:\n  \S+: .*` + regexp.QuoteMeta(account) + `.*\n  \S+: .*` + regexp.QuoteMeta(other) + `.*\n$`, "the nodes differ\n"},
		"lacking": {node("ddd", strings.Replace(ledger, account+",", "", 1)), exitFailure, `the first difference, at slot 7:\n  \S+: .*` + key + `.*\n  \S+: holds nothing of it\n$`, "the nodes differ\n"},
		"mint":    {node("ee", strings.Replace(ledger, mint[0], strings.TrimSuffix(mint[0], mint[2])+"99", 1)), exitFailure, `at slot 7:\n  \S+: .*` + mint[1] + `","mint":\{"decimals":` + mint[2] + `.*\n  \S+: .*` + mint[1] + `","mint":\{"decimals":99.*\n$`, "the nodes differ\n"},
		"nobody":  {"http://127.0.0.1:1", exitUsage, "^$", "cannot compare: "},
		"no URL":  {"127.0.0.1:1", exitUsage, "^$", "cannot compare: "},
	} {
		if out := toolSays(t, tt.code, tt.says, "diff", whole, tt.node+"/"); !regexp.MustCompile(tt.out).MatchString(out) {
			t.Errorf("%s: it prints\n%s\nwant %s", name, out, tt.out)
		}
	}
	toolSays(t, exitUsage, "names one node", "diff", "--unix-socket", "ops.sock", whole, whole)
}

// Of nodes that are never at one slot at a time the states at one slot are compared, and nothing else, however often they send theirs to somebody else.
func TestDiffComparesOneSlot(t *testing.T) {
	t.Parallel()
	for behind := range uint64(4) {
		var asked atomic.Uint64
		asked.Store(100)
		node := func(slot func() uint64, last string) string {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1)%3 == 0 && r.URL.Query().Has("accounts") { // somebody else is sent all accounts
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				at := slot()
				fmt.Fprintf(w, `{"slot":%d,"blockhash":"b%[1]d","state_hash":"%[1]d %[2]s"}`+"\n", at, last)
				if r.URL.Query().Has("accounts") {
					fmt.Fprintf(w, `{"accounts":[{"pubkey":"11111111111111111111111111111111","lamports":%d}]}`+"\n", at)
					fmt.Fprintf(w, `{"accounts":[{"pubkey":"%s","lamports":1}]}`+"\n", last)
				}
			}))
			t.Cleanup(s.Close)
			return s.URL
		}
		one, two := toolKey("one").String(), toolKey("two").String()
		ahead := node(func() uint64 { return asked.Load() / 5 }, one)
		late := node(func() uint64 { return asked.Load()/5 - behind }, two)
		equal := node(func() uint64 { return asked.Load()/5 - behind }, one)
		for _, pair := range [][]string{{ahead, late}, {late, ahead}} {
			out := toolSays(t, exitFailure, "the nodes differ\n", "diff", pair[0], pair[1])
			ledgertest.Equal(t, strings.Count(out, `","lamports":1}`)+strings.Count(out, "holds nothing of it"), 2, "%d slots behind, and in %s", behind, out)
		}
		if out := toolSays(t, exitOK, "", "diff", equal, ahead); !strings.HasPrefix(out, "equal at slot ") {
			t.Errorf("it prints %s", out)
		}
	}
}
