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
	} {
		ledgertest.Must(t, os.WriteFile(path, []byte(wrong), 0o600))
		_, err := (&HeaderFiles{HeaderFile: path}).Read()
		ledgertest.Holds(t, err != nil, "%.20q is sent", wrong)
	}
}
