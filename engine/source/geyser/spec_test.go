package geyser

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ledgerd/engine/ledger"
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
		sent, err2 := c.headers()
		must(t, err2)
		got := want{strings.Join(c.Addresses, ","), strings.Join(sent.secrets(), ","), rpc, c.Compression, c.TLS != nil, c.WholeData, c.NoTransactions, c.SkipVotes}
		if err != nil || got != w {
			t.Errorf("%s: %v, got %+v, want %+v", spec, err, got, w)
		}
	}
	t.Setenv(TokenVariable, "fr0menv")
	if c, _, err := ParseSpec("http://h:1", nil); err != nil || c.Token != "fr0menv" {
		t.Errorf("token of the environment: %q, %v", c.Token, err)
	}
	if c, _, err := ParseSpec("http://h:1?token=s3cret", nil); err != nil || c.Token != "s3cret" {
		t.Errorf("the specification's token does not win: %q, %v", c.Token, err)
	}
}

// What is read again for each session is no pipe, which would be waited for.
func TestPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for _, options := range []string{"token-file=" + pipe, "header-file=" + pipe, "tls-cert=" + pipe + "&tls-key=" + pipe} {
		if _, _, err := ParseSpec("https://h:1?"+options, nil); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("%s: %v", options, err)
		}
	}
}

// Only accounts that are listed by their keys can be asked for alone.
func TestIndexedAccountsAreThoseOfTheFilter(t *testing.T) {
	accounts, program := []ledger.Pubkey{{2}, {1}}, []ledger.Pubkey{{3}}
	for spec, tt := range map[string]struct {
		held *ledger.Filter
		want string // the accounts, or a part of the error
	}{
		"http://h:1?accounts=indexed": {ledger.NewFilter(nil, accounts), ledger.JoinKeys([]ledger.Pubkey{{1}, {2}})},
		"http://h:1?accounts=all":     {ledger.NewFilter(nil, accounts), ""},
		"http://h:1":                  {ledger.NewFilter(nil, accounts), ""},
		"http://i:1?accounts=indexed": {ledger.NewFilter(program, accounts), "needs --index-accounts without --index-owners"},
		"http://j:1?accounts=indexed": {nil, "needs --index-accounts without --index-owners"},
	} {
		c, _, err := ParseSpec(spec, tt.held)
		if err == nil && ledger.JoinKeys(c.Accounts) != tt.want || err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, %v, want %q", spec, c.Accounts, err, tt.want)
		}
	}
}
