package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

func TestHeadersThatCannotBeSentAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headers")
	for _, wrong := range []string{
		"", "no header", "grpc-timeout: 1", "a b: c", "x: ", "x: \x00", "x:" + strings.Repeat("s", tokenBytes+1),
		strings.Repeat("a: b\n", maxHeaders+1), strings.Repeat(" ", headerFileBytes) + "a: b",
		"Accept-Encoding: gzip", "Host: a", "Content-Length: 1", "Content-Type: a",
		"Connection: x", "Keep-Alive: x", "Proxy-Connection: x", "TE: x", "Trailer: x", "Transfer-Encoding: x", "Upgrade: x",
	} {
		ledgertest.Must(t, os.WriteFile(path, []byte(wrong), 0o600))
		_, err := (&HeaderFiles{HeaderFile: path}).Read()
		ledgertest.Holds(t, err != nil, "%.20q is sent", wrong)
	}
	ledgertest.Must(t, os.WriteFile(path, []byte("a: b\nno header"), 0o600))
	_, err := (&HeaderFiles{HeaderFile: path}).Read()
	ledgertest.ErrorSays(t, err, "line 2 of the file", "the second of two headers")
}

// What a node repeats is hidden by words, and no longer secret shows its rest once a shorter one in it is hidden.
func TestSecretsAreTheWordsTheLongestFirst(t *testing.T) {
	got := Headers{"x-token", "t0ken", "authorization", "by s3cr3t-key k3y4 abc", "x-tier", "2"}.Secrets()
	ledgertest.Equal(t, got, []string{"by s3cr3t-key k3y4 abc", "s3cr3t-key", "t0ken", "k3y4", "2"}, "the secrets")
}
