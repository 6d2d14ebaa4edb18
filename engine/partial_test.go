package engine

import (
	"strings"
	"testing"

	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// lacking is which lists of a node may lack accounts, and what it says of accounts that it does not hold.
type lacking struct {
	program, other, tokens bool // lists of key(9), of another program, and of a wallet
	absent                 string
}

// TestListsSayWhetherTheyMayLackAccounts with and without a filter, of sources that show all accounts and of those
// that show what is touched alone, and of imports.
func TestListsSayWhetherTheyMayLackAccounts(t *testing.T) {
	const unknown, none = "account not indexed", "neither an account"
	gaps := ledger.SourceInfo{GapsAllowed: true}
	key9 := ledger.NewFilter([]ledger.Pubkey{key(9)}, nil)
	bothTokens := ledger.NewFilter([]ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program}, nil)
	type row struct {
		info     ledger.SourceInfo
		imported bool
		filter   *ledger.Filter
		want     lacking
	}
	bubbletest.Each(t, map[string]row{
		"all accounts":                 {live(), false, nil, lacking{false, false, false, none}},
		"what is touched":              {partial(), false, nil, lacking{true, true, true, unknown + ": neither"}},
		"an import":                    {partial(), true, nil, lacking{false, false, false, none}},
		"an import with gaps":          {gaps, true, nil, lacking{true, true, true, unknown}},
		"a program of all":             {live(), false, key9, lacking{false, true, true, unknown}},
		"both token programs":          {live(), false, bothTokens, lacking{true, true, false, unknown}},
		"one token program":            {live(), false, ledger.NewFilter([]ledger.Pubkey{ledger.TokenProgram}, nil), lacking{true, true, true, unknown}},
		"an account of all":            {live(), false, ledger.NewFilter(nil, []ledger.Pubkey{key(1)}), lacking{true, true, true, unknown}},
		"a program of the import":      {partial(), true, key9, lacking{false, true, true, unknown}},
		"a program of what is touched": {partial(), false, key9, lacking{true, true, true, unknown}},
	}, func(t *testing.T, tt row) {
		disk := vfstest.NewMemory()
		if tt.info.Identity = ""; tt.imported {
			_, err := importInto(t, disk, someTold(), importPoint(), importer.Config{Filter: tt.filter})
			must(t, err)
		}
		c := onDisk(t, disk, Config{Shards: 2})
		must(t, c.Dir.Bind(&tt.info, tt.filter, nil, false))
		n := startNode(t, tt.info, c)
		b := child(at100, 101, 0, owned(key(1), 1, key(9)), owned(key(4), 1, key(9)))
		for _, i := range []int{5, 8, 9} {
			b.Accounts = append(b.Accounts, owned(key(i), 1, key(8)))
		}
		n.send(b, child(b, 102, 0, ledger.AccountWrite{Pubkey: key(4)}))
		mustSayWhatIsLacking(t, n, tt.want)
		n.mustStop()
		c.Dir.Close()
		// Who serves what is there knows as much.
		mustSayWhatIsLacking(t, serving(t, disk, 1), tt.want)
	})
}

func mustSayWhatIsLacking(t *testing.T, n *subject, want lacking) {
	t.Helper()
	nothing := ledger.Opt[ledger.Pubkey]{}
	_, _, program, errProgram := n.Program(ledger.Query{}, key(9), nothing, 10, nil)
	_, _, other, errOther := n.Program(ledger.Query{}, key(8), nothing, 10, nil)
	_, _, tokens, errTokens := n.Tokens(ledger.Query{}, key(1), nothing, 10, nil)
	for _, err := range []error{errProgram, errOther, errTokens} {
		if err != nil && !strings.HasPrefix(err.Error(), "account not indexed") {
			t.Error(err)
		}
	}
	ledgertest.Equal(t, (lacking{program.Lacks, other.Lacks, tokens.Lacks, want.absent}), want, "lists that may lack accounts")
	_, _, _, errProgram = n.Program(ledger.Query{}, key(77), nothing, 10, nil)
	_, _, _, errTokens = n.Tokens(ledger.Query{}, key(77), nothing, 10, nil)
	for _, err := range []error{errProgram, errTokens} {
		if err == nil || !strings.HasPrefix(err.Error(), want.absent) {
			t.Errorf("list of a key that nothing is held of: %v, want %q", err, want.absent)
		}
	}
	whole := strings.HasPrefix(want.absent, "neither")
	if _, v, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1), key(77)}); err != nil || v.Lacks == whole {
		t.Errorf("two accounts of which one is not held: %v, may lack accounts: %v", err, v.Lacks)
	}
	_, _, why := n.Account(ledger.Query{}, key(4))
	closed, _ := absence(why)
	if all, v, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1), key(4)}); err != nil || all[1].Exists() || closed.Absence == ledger.AccountClosed && v.Lacks {
		t.Errorf("two accounts of which one is known to be closed: %v, may lack accounts: %v", err, v.Lacks)
	}
}
