package engine

import (
	"strings"
	"testing"
	"testing/synctest"

	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestListsSayWhetherTheyMayLackAccounts with and without a filter, of sources that show all accounts and of those
// that show what is touched alone, and of imports.
func TestListsSayWhetherTheyMayLackAccounts(t *testing.T) {
	tokens := []ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program}
	tests := map[string]struct {
		info     ledger.SourceInfo
		imported bool
		filter   *ledger.Filter

		lacks, lacksOther, lacksTokens bool // lists of key(9), of another program, and of a wallet
		absent                         string
	}{
		"all accounts": {info: live(), absent: "neither an account"},
		"what is touched": {
			info: partial(), lacks: true, lacksOther: true, lacksTokens: true, absent: "account not indexed: neither",
		},
		"an import":               {info: partial(), imported: true, absent: "neither an account"},
		"an import with gaps":     {info: ledger.SourceInfo{Finite: true, GapsAllowed: true}, imported: true, lacks: true, lacksOther: true, lacksTokens: true, absent: "account not indexed"},
		"a program of all":        {info: live(), filter: ledger.NewFilter([]ledger.Pubkey{key(9)}, nil), lacksOther: true, lacksTokens: true, absent: "account not indexed"},
		"both token programs":     {info: live(), filter: ledger.NewFilter(tokens, nil), lacks: true, lacksOther: true, absent: "account not indexed"},
		"an account of all":       {info: live(), filter: ledger.NewFilter(nil, []ledger.Pubkey{key(1)}), lacks: true, lacksOther: true, lacksTokens: true, absent: "account not indexed"},
		"a program of the import": {info: partial(), imported: true, filter: ledger.NewFilter([]ledger.Pubkey{key(9)}, nil), lacksOther: true, lacksTokens: true, absent: "account not indexed"},
		"a program of what is touched": {
			info: partial(), filter: ledger.NewFilter([]ledger.Pubkey{key(9)}, nil), lacks: true, lacksOther: true, lacksTokens: true, absent: "account not indexed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				disk := vfstest.NewMemory()
				if tt.info.Identity = ""; tt.imported {
					if _, err := importInto(t, disk, someTold(), importPoint(), importer.Config{Filter: tt.filter}); err != nil {
						t.Fatal(err)
					}
				}
				c := onDisk(t, disk, Config{Shards: 2})
				if err := c.Dir.BindFilter(tt.filter); err != nil {
					t.Fatal(err)
				}
				if err := c.Dir.BindSource(tt.info); err != nil {
					t.Fatal(err)
				}
				n := startNode(t, tt.info, c)
				n.send(child(at100, 101, 0, owned(key(1), 1, key(9)), owned(key(4), 1, key(9)), owned(key(5), 1, key(8)), owned(key(8), 1, key(8)), owned(key(9), 1, key(8))))
				synctest.Wait()
				mustSayWhatIsLacking(t, n, tt.lacks, tt.lacksOther, tt.lacksTokens, tt.absent)
				n.mustStop()
				c.Dir.Close()
				// Who serves what is there knows as much.
				mustSayWhatIsLacking(t, serving(t, disk, 1), tt.lacks, tt.lacksOther, tt.lacksTokens, tt.absent)
			})
		})
	}
}

func mustSayWhatIsLacking(t *testing.T, n *subject, lacks, lacksOther, lacksTokens bool, absent string) {
	t.Helper()
	none := ledger.Opt[ledger.Pubkey]{}
	for owner, want := range map[ledger.Pubkey]bool{key(9): lacks, key(8): lacksOther} {
		_, _, v, err := n.Program(ledger.Query{}, owner, none, 10)
		if err != nil && !strings.HasPrefix(err.Error(), "account not indexed") || v.Lacks != want {
			t.Errorf("accounts of %s: %v, may lack accounts: %v, want %v", owner, err, v.Lacks, want)
		}
	}
	if _, _, v, err := n.Tokens(ledger.Query{}, key(1), none, 10); err != nil && !strings.HasPrefix(err.Error(), "account not indexed") || v.Lacks != lacksTokens {
		t.Errorf("tokens: %v, may lack accounts: %v, want %v", err, v.Lacks, lacksTokens)
	}
	_, _, _, err := n.Program(ledger.Query{}, key(77), none, 10)
	if err == nil || !strings.HasPrefix(err.Error(), absent) {
		t.Errorf("accounts of a program that nothing is held of: %v, want %q", err, absent)
	}
	if _, _, _, err = n.Tokens(ledger.Query{}, key(77), none, 10); err == nil || !strings.HasPrefix(err.Error(), absent) {
		t.Errorf("tokens of a wallet that nothing is held of: %v, want %q", err, absent)
	}
	whole := strings.HasPrefix(absent, "neither")
	if _, v, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1), key(77)}); err != nil || v.Lacks == whole {
		t.Errorf("two accounts of which one is not held: %v, may lack accounts: %v", err, v.Lacks)
	}
}

// TestAnAccountThatIsKnownToBeClosedIsNotLacking among several.
func TestAnAccountThatIsKnownToBeClosedIsNotLacking(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, partial(), Config{Shards: 2})
		root := rootBlock(100, owned(key(1), 1, key(9)), owned(key(2), 1, key(9)))
		n.send(root, child(root, 101, 0, ledger.AccountWrite{Pubkey: key(2)}))
		if all, v, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1), key(2)}); err != nil || v.Lacks || all[1].Exists() {
			t.Errorf("%+v, may lack accounts: %v, %v", all, v.Lacks, err)
		}
		n.mustStop()
	})
}
