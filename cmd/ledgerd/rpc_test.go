package main

import (
	"os"
	"path/filepath"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// Wallets' libraries as they are read every answer of JSON-RPC, and it is that of REST at the same slot.
func TestLibrariesOfSolanaReadWhatRESTSays(t *testing.T) {
	modules, err := filepath.Abs(consoleFolder + "/node_modules")
	must(t, err)
	if _, err := os.Stat(modules + "/@solana"); err != nil {
		t.Skip("npm ci has not installed the libraries of Solana: ", err)
	}
	needs(t, "node")
	script := readFile(t, "testdata/rpcclients.mjs")
	for _, data := range []string{"none", "all"} {
		t.Run("--data "+data, func(t *testing.T) {
			t.Parallel()
			const genesis = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
			n := start(t, "--data-dir", t.TempDir(), "--source", "sim:slots=60,slot_time=0", "--data", data, "--rpc-listen", "127.0.0.1:0", "--genesis-hash", genesis)
			door := n.out.await(t, `JSON-RPC +(http://\S+/)`)[1]
			get(t, n.base+"/blocks/latest?min_slot=60&wait_ms=2000")
			dir := t.TempDir()
			must(t, os.Symlink(modules, dir+"/node_modules"))
			must(t, os.WriteFile(dir+"/clients.mjs", script, 0o644))
			// These keys exist in the ledger from the start: a wallet with tokens, and a mint.
			const wallet, mint = "3EBThKhENiGqNNQoTQdWWPheb6w3swfZiHwfgs1FAqD2", "HrnUbUaxx7WD9aRdHJRk5joPUKG1dZxmr1nEqqrgfE9R"
			printed := output(t, dir, "node", "clients.mjs", door, n.base, wallet, mint, data)
			ledgertest.Equal(t, string(printed), "", "what the libraries say")
		})
	}
}
