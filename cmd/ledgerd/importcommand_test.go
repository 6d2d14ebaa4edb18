package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source"
	"ledgerd/engine/source/file"
	"ledgerd/engine/source/nodetest"
)

var stateHashField = regexp.MustCompile(`state_hash=\S+`)

// archived returns the record of an account.
func archived(w ledger.AccountWrite) agavetest.Record {
	record := agavetest.Record{Pubkey: w.Pubkey, Lamports: uint64(w.Lamports), Owner: w.Owner, RentEpoch: w.RentEpoch}
	if w.Executable {
		record.Executable = 1
	}
	switch {
	case w.Mint != nil:
		record.Data = agavetest.MintData(w.Mint)
	case w.Token != nil:
		record.Data = agavetest.TokenData(w.Token)
	}
	return record
}

// A node that imports a full and an incremental archive of a ledger at one slot, and then reads all of that ledger,
// ends with the same state as one that read it from its beginning. Archives that do not belong together are refused.
func TestImportedNodeEndsAsTheStraightRun(t *testing.T) {
	t.Parallel()
	const simulated = "seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,finality=8,slots=80"
	sim, err := source.Open("sim:"+simulated, source.Options{Log: quietLog()})
	must(t, err)
	var lines []byte
	must(t, sim.Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
		lines = file.AppendEventLine(lines, e)
		return nil
	}))
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, os.WriteFile(whole, lines, 0o600))
	straight := start(t, "--data-dir", t.TempDir(), "--source", "file:"+whole)
	want := stateHashField.FindString(straight.ending(t))
	straight.stop()

	l, err := nodetest.Simulated(simulated, 0)
	must(t, err)
	early, half := l.Main()[len(l.Main())/4], l.Main()[len(l.Main())/2]
	full, earlier, changes := archiveOfNode(t, l, nil, half), archiveOfNode(t, l, nil, early), archiveOfNode(t, l, early, half)
	dir := filepath.Join(t.TempDir(), "new")
	toolSays(t, exitOK, "", "import", "--data-dir", dir, "--archive", earlier, "--incremental", changes)
	toolSays(t, exitOK, "", "snapshot", "verify", "--data-dir", dir)
	for range 2 { // the second time there is nothing new
		n := start(t, "--data-dir", dir, "--source", "file:"+whole)
		ledgertest.Equal(t, stateHashField.FindString(n.ending(t)), want, "after the import")
		n.stop()
	}
	for _, wrong := range [][]string{{"--archive", changes}, {"--archive", full, "--incremental", changes}, {"--archive", earlier, "--incremental", full}} {
		toolSays(t, exitUsage, "", append([]string{"import", "--data-dir", filepath.Join(t.TempDir(), "new")}, wrong...)...)
	}
}

// TestRecordedAccountsAreImported holds real account data, at several slots each, against what the
// file source makes of it.
func TestRecordedAccountsAreImported(t *testing.T) {
	path := datatest.Path(t, "accounts/account-updates.json")
	content := readFile(t, path)
	var updates []struct {
		Pubkey  string
		Slot    uint64
		Account struct {
			Lamports, RentEpoch uint64
			Owner               string
			Executable          bool
			Data                [2]json.RawMessage
		}
	}
	must(t, json.Unmarshal(content, &updates))
	a := &agavetest.Archive{}
	newest := make(map[ledger.Pubkey]uint64)
	for i, u := range updates {
		record := agavetest.Record{Lamports: u.Account.Lamports, RentEpoch: u.Account.RentEpoch}
		must(t, json.Unmarshal(u.Account.Data[0], &record.Data))
		record.Pubkey, _ = ledger.ParsePubkey(u.Pubkey)
		record.Owner, _ = ledger.ParsePubkey(u.Account.Owner)
		if u.Account.Executable {
			record.Executable = 1
		}
		if n := len(a.Storages); n == 0 || a.Storages[n-1].Slot != u.Slot {
			a.Storages = append(a.Storages, agavetest.Storage{Slot: u.Slot, ID: uint64(i)})
		}
		last := &a.Storages[len(a.Storages)-1]
		last.Records = append(last.Records, record)
		a.Slot = max(a.Slot, u.Slot)
		newest[record.Pubkey] = record.Lamports // they are in the order of slots
	}
	for _, lamports := range newest {
		a.Capitalization += lamports
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(a.Storages), func(i, k int) { a.Storages[i], a.Storages[k] = a.Storages[k], a.Storages[i] })
	archive, err := a.Write(t.TempDir())
	must(t, err)
	_, errors, code := tool(t, "import", "--archive", archive, "--data-dir", filepath.Join(t.TempDir(), "new"))
	r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+path)
	want := strings.TrimPrefix(stateHashField.FindString(r.ending(t)), "state_hash=")
	r.stop()
	if code != exitOK || want == "" || !strings.Contains(errors, "state hash "+want) {
		t.Errorf("exit %d, %swant state hash %s", code, errors, want)
	}
}

// archiveOfNode writes an archive of a test node's ledger at a block.
func archiveOfNode(t *testing.T, l *nodetest.Ledger, since, at *ledger.Block) (path string) {
	t.Helper()
	a := &agavetest.Archive{Slot: uint64(at.Slot), Parent: uint64(at.ParentSlot), Blockhash: at.Blockhash, VoteAccounts: 2}
	a.Height = at.Height.Value
	s := agavetest.Storage{Slot: a.Slot, ID: 1}
	before := map[ledger.Pubkey]*ledger.AccountWrite{}
	if since != nil {
		a.Base, before = uint64(since.Slot), l.Accounts(since.Slot)
	}
	for key, w := range l.Accounts(at.Slot) {
		switch {
		case w == nil && before[key] != nil:
			s.Records = append(s.Records, agavetest.Record{Pubkey: key})
		case w != nil:
			a.Capitalization += uint64(w.Lamports)
			if !reflect.DeepEqual(w, before[key]) {
				s.Records = append(s.Records, archived(*w))
			}
		}
	}
	a.Storages = []agavetest.Storage{s}
	path, err := a.Write(t.TempDir())
	must(t, err)
	return path
}

// until asks again, after what is to be done in between, until an answer holds all the words.
func until(t testing.TB, url string, between func(), words ...string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, body := get(t, url)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(body), w) }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s\nwant %q in it", url, body, words)
		}
		between()
	}
}

// A node that imports an archive goes on from its slot with a live node, over its stream or over JSON-RPC, whichever of the two is ahead, and holds in
// the end what the live node does; where that shows nobody all accounts, the listed ones of it, through a lost connection.
func TestImportedNodeFollowsALiveOne(t *testing.T) {
	t.Parallel()
	l, err := nodetest.Simulated("seed=3,accounts=150,tps=20,slot_time=0,fork_rate=0.1,slots=60", 0)
	must(t, err)
	blocks := l.Main()
	last, isListed := blocks[len(blocks)-1], func(key ledger.Pubkey) bool { return key[0]%2 == 0 }
	var listed []ledger.Pubkey
	for key := range l.Accounts(last.Slot) {
		if isListed(key) {
			listed = append(listed, key)
		}
	}
	for name, tt := range map[string]struct {
		spec   func(n *nodetest.Node) string
		node   nodetest.Config
		listed []string // the flag
	}{
		"stream":   {spec: func(n *nodetest.Node) string { return "geyser:" + n.StreamURL() + "?data=full" }},
		"JSON-RPC": {spec: func(n *nodetest.Node) string { return "rpc:" + n.CallsURL() }},
		"listed accounts": {
			func(n *nodetest.Node) string {
				return "geyser:" + n.StreamURL() + "?accounts=indexed&votes=skip"
			},
			nodetest.Config{NoAny: true}, []string{"--index-accounts=" + ledger.JoinKeys(listed)},
		},
	} {
		for order, at := range map[string]struct{ archive, live int }{
			"ahead":  {len(blocks) / 4, 20},
			"behind": {len(blocks) / 2, 8},
		} {
			t.Run(name+" "+order, func(t *testing.T) {
				t.Parallel()
				live := startNode(t, l, tt.node)
				defer live.Close()
				live.Advance(at.live)
				dir := filepath.Join(t.TempDir(), "data")
				imported := blocks[at.archive]
				toolSays(t, exitOK, "", append([]string{"import"}, slices.Concat(tt.listed, []string{"--archive", archiveOfNode(t, l, nil, imported), "--data-dir", dir})...)...)
				r := begin(t, append(tt.listed, "--data-dir", dir, "--source", tt.spec(live))...).reach(t)
				a := dial(t, r)
				if order == "behind" {
					answersFromImport(t, a, r, live, imported)
				}
				kick := sync.OnceFunc(func() { live.Inject(nodetest.Fault{Kind: nodetest.Kick, Code: codes.Unavailable}) })
				until(t, r.base+"/blocks/latest", func() {
					live.Advance(1)
					if tt.listed != nil && live.Tip(ledger.Processed) > 45 {
						kick()
					}
				}, fmt.Sprintf(`"slot":%d,`, last.Slot))
				until(t, r.ops+"/readyz", func() {}, `"status":"ready"`)
				a.wantMissing(fmt.Sprint("/blocks/", imported.Slot), "slot not indexed")
				a.ok(fmt.Sprint("/blocks/", blocks[at.archive+1].Slot))
				for key, w := range l.Accounts(last.Slot) {
					got := askAccount(t, r.base+"/account/"+key.String())
					switch {
					case tt.listed != nil && !isListed(key):
						ledgertest.Equal(t, fmt.Sprint(got.status, got.Details), "404account not indexed: this node holds only part of the ledger", "an account that is not listed")
					case w == nil && got.status != http.StatusNotFound, w != nil && (got.status != http.StatusOK || got.Lamports != w.Lamports):
						t.Errorf("%v is answered %d %s, want %+v", key, got.status, got.body, w)
					}
				}
				ledgertest.Equal(t, r.stop(), exitOK, "the exit code of what said\n%s", r.errs)
				if tt.listed == nil {
					again := start(t, "--data-dir", dir, "--source", "none")
					ledgertest.Equal(t, again.errs.await(t, `msg=recovered slot=\d+ seq=\d+ (state_hash=\S+)`)[1], fmt.Sprint("state_hash=", l.StateHash(last.Slot)), "the end")
				}
			})
		}
	}
}

// answersFromImport looks at a node that holds an archive newer than the live node: it answers from the archive and says that it waits.
func answersFromImport(t *testing.T, a *api, r *running, live *nodetest.Node, at *ledger.Block) {
	t.Helper()
	heard := 0
	until(t, r.ops+"/readyz", func() { // a stream tells of slots as they come, to those who listen
		if n := live.Subscriptions(); n > heard && live.Tip(ledger.Processed)+4 < at.Slot {
			heard = n
			live.Advance(3)
		}
	}, fmt.Sprintf("no block has come since the start, reads are answered from the import of slot %d: the node is at slot", at.Slot),
		fmt.Sprintf("behind slot %d that is held here", at.Slot))
	held := at.Accounts[slices.IndexFunc(at.Accounts, func(w ledger.AccountWrite) bool { return a.get("/account/"+w.Pubkey.String()).status == http.StatusOK })]
	got := a.ok("/account/" + held.Pubkey.String() + "/balance").header.Get("X-Ledger-Slot")
	ledgertest.Equal(t, got, fmt.Sprint(at.Slot), "X-Ledger-Slot of an account of the archive")
	a.wantMissing(fmt.Sprint("/blocks/", at.Slot), "slot not indexed")
	a.wantMissing(fmt.Sprint("/blocks/", at.Slot+1), "slot not yet produced")
	until(t, r.ops+"/metrics", func() {}, fmt.Sprintf("ledgerd_slot{commitment=\"processed\"} %d\n", at.Slot), "ledgerd_healthy 0")
}
