package geyser

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
)

func TestSpecificationsAreRead(t *testing.T) {
	file, long := filepath.Join(t.TempDir(), "token"), strings.Repeat("s3cret", 600)
	must(t, os.WriteFile(file, []byte(" "+long+"\n"), 0o600))
	type want struct {
		addresses, token, rpc, compression string
		tls, whole, noTx, noVotes          bool
	}
	for spec, w := range map[string]want{
		"http://10.0.0.1:10000":                                              {addresses: "10.0.0.1:10000"},
		"http://[::1]:10000/":                                                {addresses: "[::1]:10000"},
		"https://node.test":                                                  {addresses: "node.test:443", tls: true},
		"https://node.test:7443?token=s3cret":                                {addresses: "node.test:7443", tls: true, token: "s3cret"},
		"http://h:1?token-file=" + file:                                      {addresses: "h:1", token: long},
		"http://h:1,http://[::1]:2":                                          {addresses: "h:1,[::1]:2"},
		"https://h,https://g:7?token=s3cret":                                 {addresses: "h:443,g:7", tls: true, token: "s3cret"},
		"http://h:1?rpc=http://h:2/key?a=b":                                  {addresses: "h:1", rpc: "http://h:2/key?a=b"},
		"http://h:1?rpc=http%3A%2F%2Fh%3A2%3Fa%3Db%26c%3Dd":                  {addresses: "h:1", rpc: "http://h:2?a=b&c=d"},
		"http://h:1?compression=zstd&data=full&transactions=none&votes=skip": {addresses: "h:1", compression: "zstd", whole: true, noTx: true, noVotes: true},
		"http://h:1?compression=none&data=header&transactions=all&votes=all": {addresses: "h:1"},
	} {
		c, rpc, err := ParseSpec(spec, nil)
		sent, err2 := c.Headers.Read()
		must(t, err2)
		got := want{strings.Join(c.Addresses, ","), strings.Join(sent.Secrets(), ","), rpc, c.Compression, c.TLS != nil, c.WholeData, c.NoTransactions, c.SkipVotes}
		must(t, err)
		ledgertest.Equal(t, got, w, "%s", spec)
	}
	t.Setenv(TokenVariable, "fr0menv")
	for spec, want := range map[string]string{"http://h:1": "fr0menv", "http://h:1?token=s3cret": "s3cret", "http://h:1?token-file=" + file: ""} {
		c, _, err := ParseSpec(spec, nil)
		must(t, err)
		ledgertest.Equal(t, c.Headers.Token, want, "the token of %s", spec)
	}
}

// Only accounts that are listed by their keys can be asked for alone.
func TestIndexedAccountsAreThoseOfTheFilter(t *testing.T) {
	const refused = " accounts=indexed needs --index-accounts without --index-owners: a node does not show how an account leaves its program"
	accounts := []ledger.Pubkey{{2}, {1}}
	listed, owned := ledger.NewFilter(nil, accounts), ledger.NewFilter([]ledger.Pubkey{{3}}, accounts)
	for _, tt := range []struct {
		options string
		held    *ledger.Filter
		want    string // the accounts, and the error
	}{
		{"?accounts=indexed", listed, ledger.JoinKeys([]ledger.Pubkey{{1}, {2}}) + " <nil>"},
		{"?accounts=all", listed, " <nil>"},
		{"", listed, " <nil>"},
		{"?accounts=indexed", owned, refused},
		{"?accounts=indexed", nil, refused},
	} {
		c, _, err := ParseSpec("http://h:1"+tt.options, tt.held)
		ledgertest.Equal(t, fmt.Sprint(ledger.JoinKeys(c.Accounts), " ", err), tt.want, "%s", tt.options)
	}
}

// Whatever an operator gives is refused without a word of it, or names nodes and asks them for what a server reads.
func FuzzParseSpec(f *testing.F) {
	const given = "s3cret"
	for _, spec := range []string{
		"http://s3cret:1", "https://s3cret@h", "http://h:1,http://s3cret:2", "https://h:1?token=s3cret&data=full&compression=gzip",
		"http://h:1?rpc=http://h:2/s3cret&accounts=indexed&transactions=none", "http://h:1?header-file=/none/s3cret&votes=skip",
		"https://h?tls-ca=/none/s3cret", "http://h:1?votes=s3cret", "http://h:1?s3cret=all", "http://h:1?token=%0as3cret", "https://s3cret]h",
	} {
		before, after, _ := strings.Cut(spec, given)
		f.Add(before, after)
	}
	held := ledger.NewFilter(nil, []ledger.Pubkey{keyOf(1), keyOf(2)})
	f.Fuzz(func(t *testing.T, before, after string) {
		c, _, err := ParseSpec(before+given+after, held)
		if err != nil {
			ledgertest.Holds(t, !strings.Contains(err.Error(), given), "an error shows what was given: %v", err)
			return
		}
		for n, address := range c.Addresses {
			host, port, err := net.SplitHostPort(address)
			ledgertest.Holds(t, err == nil && host != "" && port != "" && !slices.Contains(c.Addresses[:n], address), "the node %q, %v", address, err)
		}
		asked := subscription{accounts: c.Accounts, sliced: !c.WholeData, noTransactions: c.NoTransactions, skipVotes: c.SkipVotes}
		_, err = nodetest.ParseRequest(asked.encode())
		must(t, err)
	})
}
