package main

import (
	"os"
	"path/filepath"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// libraries runs a script of testdata with the libraries of Solana, which must have nothing to say.
func libraries(t *testing.T, script string, args ...string) {
	t.Helper()
	modules, err := filepath.Abs(consoleFolder + "/node_modules")
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(modules, dir+"/node_modules"))
	must(t, os.WriteFile(dir+"/"+script, readFile(t, "testdata/"+script), 0o644))
	ledgertest.Equal(t, string(output(t, dir, append([]string{"node", script}, args...)...)), "", "what the libraries say")
}

// needsLibraries skips the test where they are not installed.
func needsLibraries(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(consoleFolder + "/node_modules/@solana/spl-token"); err != nil {
		t.Skip("npm ci has not installed the libraries of Solana: ", err)
	}
	needs(t, "node")
}

// goLibrary runs testdata/solanago, in CI: it is compiled for half a minute, and takes the network.
func goLibrary(t *testing.T, args ...string) {
	t.Helper()
	if os.Getenv("LEDGERD_GENERATORS") == "" {
		return
	}
	program := t.TempDir() + "/solanago"
	output(t, "testdata/solanago", "go", "build", "-o", program, ".")
	output(t, ".", append([]string{program}, args...)...)
}

// Wallets' libraries as they are read every answer of JSON-RPC, and it is that of REST at the same slot.
func TestLibrariesOfSolanaReadWhatRESTSays(t *testing.T) {
	needsLibraries(t)
	for _, data := range []string{"none", "all"} {
		t.Run("--data "+data, func(t *testing.T) {
			t.Parallel()
			const genesis = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
			n := start(t, "--data-dir", t.TempDir(), "--source", "sim:slots=60,slot_time=0", "--data", data, "--rpc-listen", "127.0.0.1:0", "--genesis-hash", genesis)
			door := n.out.await(t, `JSON-RPC +(http://\S+/)`)[1]
			get(t, n.base+"/blocks/latest?min_slot=60&wait_ms=2000")
			// These keys exist in the ledger from the start: a wallet with tokens, and a mint.
			const wallet, mint = "3EBThKhENiGqNNQoTQdWWPheb6w3swfZiHwfgs1FAqD2", "HrnUbUaxx7WD9aRdHJRk5joPUKG1dZxmr1nEqqrgfE9R"
			libraries(t, "rpcclients.mjs", door, n.base, wallet, mint, data)
			if data == "all" {
				goLibrary(t, door, n.base, wallet, mint)
			}
		})
	}
}

// They follow slots, roots and the accounts of a program as they are, and swallow no error.
func TestLibrariesOfSolanaFollow(t *testing.T) {
	needsLibraries(t)
	t.Parallel()
	n := start(t, "--data-dir", t.TempDir(), "--source", "sim:slot_time=100ms", "--data", "all", "--rpc-listen", "127.0.0.1:0")
	door := n.out.await(t, `JSON-RPC +(http://\S+/)`)[1]
	libraries(t, "rpcsockets.mjs", door, ledger.TokenProgram.String())
	goLibrary(t, door, ledger.TokenProgram.String())
}
