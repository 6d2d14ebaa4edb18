package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
)

// TestListedAccountsAreFollowedFromANodeThatRefusesAny follows a node that shows nobody all accounts. The listed ones are what they
// are there, those that were closed, too; of the others it is said that they are not indexed.
func TestListedAccountsAreFollowedFromANodeThatRefusesAny(t *testing.T) {
	t.Parallel()
	l, err := nodetest.Simulated("seed=3,accounts=150,tps=20,slot_time=0,fork_rate=0.1,slots=80", nodetest.Plan{})
	must(t, err)
	blocks := l.Main()
	first, last := blocks[10], blocks[len(blocks)-1]
	before, after := l.Accounts(first.Slot), l.Accounts(last.Slot)
	isListed := func(key ledger.Pubkey) bool { return key[0]%2 == 0 }
	var listed []ledger.Pubkey
	closed, changed := 0, 0
	for key, w := range after {
		switch {
		case !isListed(key):
			continue
		case w == nil && before[key] != nil:
			closed++
		case w != nil && before[key] != nil && w.Lamports != before[key].Lamports:
			changed++
		}
		listed = append(listed, key)
	}
	if closed == 0 || changed < 10 {
		t.Fatalf("%d of the listed accounts are closed and %d change: it proves little", closed, changed)
	}

	live := startNode(t, l, nodetest.Config{NoAny: true})
	defer live.Close()
	live.Advance(20)
	dir, index := filepath.Join(t.TempDir(), "data"), "--index-accounts="+ledger.JoinKeys(listed)
	if _, errors, code := tool(t, "import", "--archive", archiveOfNode(t, l, nil, first), "--data-dir", dir, index); code != exitOK {
		t.Fatalf("import: exit %d, %s", code, errors)
	}
	r := begin(t, "--data-dir", dir, index, "--rate-limit-exempt", "127.0.0.1", "--source",
		"geyser:"+live.StreamURL()+"?accounts=indexed&transactions=none").reach(t)
	kicked := false
	until(t, r.base+"/blocks/latest", func() {
		live.Advance(1)
		if !kicked && live.Tip(ledger.Processed) > 50 {
			kicked = true
			live.Inject(nodetest.Fault{Kind: nodetest.Kick, Code: codes.Unavailable})
		}
	}, fmt.Sprintf(`"slot":%d,`, last.Slot))
	for key, w := range after {
		a := askAccount(t, r.base+"/account/"+key.String())
		switch {
		case !isListed(key):
			ledgertest.Equal(t, fmt.Sprint(a.status, a.Details), "404account not indexed: this node holds only part of the ledger", "an account that is not listed")
		case w == nil && a.status != http.StatusNotFound, w != nil && (a.status != http.StatusOK || a.Lamports != w.Lamports || a.header.Get("X-Ledger-Partial") != ""):
			t.Errorf("%v is answered %d %s, want %+v", key, a.status, a.body, w)
		}
	}
	a := askAccount(t, r.base+"/accounts/program/"+ledger.TokenProgram.String())
	ledgertest.Equal(t, a.header.Get("X-Ledger-Partial"), "accounts", "what a list lacks")
	ledgertest.Equal(t, r.stop(), exitOK, "the exit code of what said\n%s", r.errs)
}
