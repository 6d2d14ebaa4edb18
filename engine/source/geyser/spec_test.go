package geyser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpecificationsAreRead(t *testing.T) {
	file, long := filepath.Join(t.TempDir(), "token"), strings.Repeat("s3cret", 600)
	if err := os.WriteFile(file, []byte(" "+long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type want struct {
		address, token, rpc, compression string
		tls, whole, noTx, noVotes        bool
	}
	tests := map[string]want{
		"http://10.0.0.1:10000":                                              {address: "10.0.0.1:10000"},
		"http://[::1]:10000/":                                                {address: "[::1]:10000"},
		"https://node.test":                                                  {address: "node.test:443", tls: true},
		"https://node.test:7443?token=s3cret":                                {address: "node.test:7443", tls: true, token: "s3cret"},
		"http://h:1?token-file=" + file:                                      {address: "h:1", token: long},
		"http://h:1?rpc=http://h:2/key?a=b":                                  {address: "h:1", rpc: "http://h:2/key?a=b"},
		"http://h:1?rpc=http%3A%2F%2Fh%3A2%3Fa%3Db%26c%3Dd":                  {address: "h:1", rpc: "http://h:2?a=b&c=d"},
		"http://h:1?compression=zstd&data=full&transactions=none&votes=skip": {address: "h:1", compression: "zstd", whole: true, noTx: true, noVotes: true},
		"http://h:1?compression=none&data=header&transactions=all&votes=all": {address: "h:1"},
	}
	for spec, w := range tests {
		c, rpc, err := ParseSpec(spec)
		got := want{c.Address, c.Token, rpc, c.Compression, c.TLS != nil, c.WholeData, c.NoTransactions, c.SkipVotes}
		if err != nil || got != w {
			t.Errorf("%s: %v, got %+v, want %+v", spec, err, got, w)
		}
	}
	t.Setenv(TokenVariable, "fr0menv")
	if c, _, err := ParseSpec("http://h:1"); err != nil || c.Token != "fr0menv" {
		t.Errorf("token of the environment: %q, %v", c.Token, err)
	}
	if c, _, err := ParseSpec("http://h:1?token=s3cret"); err != nil || c.Token != "s3cret" {
		t.Errorf("the specification's token does not win: %q, %v", c.Token, err)
	}
}

func TestSpecificationsAreRefusedWithoutTheirSecrets(t *testing.T) {
	tests := map[string]string{
		"":                                        "the address is not http",
		"h:1":                                     "the address is not http",
		"ftp://h:1":                               "the address is not http",
		"http://s3cret%zz:1":                      "the address is not http",
		"http://:1":                               "the address is not http",
		"http://h":                                "no port",
		"http://user:s3cret@h:1":                  "a host and a port alone",
		"https://h/s3cret":                        "a host and a port alone",
		"http://h:1?token=s3cret&token=b":         "token is given twice",
		"http://h:1?s3cret&s3cret":                "the options are",
		"http://h:1?token=s3cret%zz":              "are not NAME=VALUE",
		"http://h:1?s3cret=1":                     "the options are",
		"http://h:1?data=s3cret":                  "data is",
		"http://h:1?votes=s3cret":                 "votes is",
		"http://h:1?transactions=s3cret":          "transactions is",
		"http://h:1?compression=s3cret":           "compression is",
		"http://h:1?token=s3cret%0a":              "cannot be sent",
		"http://h:1?token-file=/no/s3cret":        "cannot be read",
		"http://h:1?token-file=/dev/zero":         "more than 65536 bytes",
		"http://h:1?token=a&token-file=/dev/null": "",
		"http://h:1?token=" + strings.Repeat("s3cret", 1000): "too long",
	}
	for spec, want := range tests {
		_, _, err := ParseSpec(spec)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q and no secret", spec, err, want)
		}
	}
}
