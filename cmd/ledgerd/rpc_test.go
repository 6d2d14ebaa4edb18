package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// script returns the words that run a script of testdata with the libraries of Solana.
func script(t *testing.T, name string, args ...string) []string {
	t.Helper()
	modules, err := filepath.Abs(consoleFolder + "/node_modules")
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(modules, dir+"/node_modules"))
	must(t, os.WriteFile(dir+"/"+name, readFile(t, "testdata/"+name), 0o644))
	return append([]string{"node", dir + "/" + name}, args...)
}

// needsLibraries skips the test where they are not installed.
func needsLibraries(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(consoleFolder + "/node_modules/@solana/spl-token"); err != nil {
		t.Skip("npm ci has not installed the libraries of Solana: ", err)
	}
	needs(t, "node")
}

// compiling is held while testdata/solanago is compiled: who comes later finds it in the cache.
var compiling sync.Mutex

// goLibrary returns testdata/solanago, in CI: it is compiled for half a minute, and takes the network. Elsewhere there is none.
func goLibrary(t *testing.T) (program string, ok bool) {
	t.Helper()
	if os.Getenv("LEDGERD_GENERATORS") == "" {
		return "", false
	}
	compiling.Lock()
	defer compiling.Unlock()
	program = t.TempDir() + "/solanago"
	output(t, "testdata/solanago", "go", "build", "-o", program, ".")
	return program, true
}

// Wallets' libraries as they are read every answer of JSON-RPC, and it is that of REST at the same slot.
func TestLibrariesOfSolanaReadWhatRESTSays(t *testing.T) {
	needsLibraries(t)
	for _, data := range []string{"none", "all"} {
		t.Run("--data "+data, func(t *testing.T) {
			t.Parallel()
			const genesis = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
			n := launch(t, "--data-dir", t.TempDir(), "--source", "sim:slots=60,slot_time=0", "--data", data, "--rpc-listen", "127.0.0.1:0", "--genesis-hash", genesis,
				fmt.Sprintf("--index-mints=%v", data == "all")).ready()
			door := n.out.await(t, `JSON-RPC +(http://\S+/)`)[1]
			n.ending()
			// These keys exist in the ledger from the start: a wallet with tokens, and a mint.
			const wallet, mint = "3EBThKhENiGqNNQoTQdWWPheb6w3swfZiHwfgs1FAqD2", "HrnUbUaxx7WD9aRdHJRk5joPUKG1dZxmr1nEqqrgfE9R"
			ledgertest.Equal(t, string(output(t, ".", script(t, "rpcclients.mjs", door, n.base, wallet, mint, data)...)), "", "what the libraries say")
			if program, ok := goLibrary(t); ok && data == "all" {
				output(t, ".", program, door, n.base, wallet, mint)
			}
		})
	}
}

// followed is what a library was told: of forks since it began, of all else since its present connection did.
type followed struct {
	Name                      string
	Starts, Forks, Signatures int
	Parsed                    int // token accounts, which solana-go does not parse
	Root                      uint64
	Wrong                     string
	Accounts, Members         map[string]string // data, by pubkey: of the accounts that it follows, and of those of the program
}

// They follow slots, roots, signatures, accounts and the accounts of a program as they are, through forks, a kill and a stop of the node: what each was
// told last of an account is what REST says. They swallow no error, and come back each time that the node was away; on a busy machine, where a call is
// answered too late, more often.
func TestLibrariesOfSolanaFollow(t *testing.T) {
	needsLibraries(t)
	t.Parallel()
	random, seed := seededRand(t)
	source := fmt.Sprintf("sim:seed=%d,accounts=500,pools=4,slot_time=50ms,fork_rate=0.2", seed)
	dir := t.TempDir()
	var node *victim
	var to atomic.Pointer[string]
	start := func() {
		node = launch(t, "--data-dir", dir, "--source", source, "--data", "all", "--rpc-listen", "127.0.0.1:0").ready()
		host := hostOf(node.out.await(t, `JSON-RPC +(http://\S+)/`)[1])
		to.Store(&host)
	}
	start()
	address := newCutter(t, random, 0, 0, func() string { return *to.Load() }).address()
	programs := []*pipedProgram{startProgram(t, "", script(t, "rpcsockets.mjs", address, poolProgram)...)}
	if program, ok := goLibrary(t); ok {
		programs = append(programs, startProgram(t, "", program, address, poolProgram))
	}
	follow := func() (all []followed) {
		for _, p := range programs {
			var some []followed
			p.tell(t, &some)
			all = append(all, some...)
		}
		return all
	}
	var all []followed
	defer func() {
		if t.Failed() {
			t.Logf("%+v", all)
		}
	}()
	for run := range 3 {
		if run == 2 {
			source += fmt.Sprintf(",slots=%d", newestSlot(node)+300)
		}
		if run > 0 {
			[]func(){node.Kill, node.stop}[run-1]()
			start()
		}
		node.until("all are told of forks, roots and outcomes", func() bool {
			all = follow()
			return !slices.ContainsFunc(all, func(f followed) bool {
				return f.Starts <= run || f.Forks <= run || f.Root == 0 || f.Signatures == 0 || f.Parsed == 0 && f.Name != "solana-go"
			})
		})
	}
	node.ending()
	want := map[string]string{}
	accounts, _ := node.accounts(levels[0], true)
	for key, a := range accounts {
		if a.Owner == poolProgram {
			want[key] = a.Data
		}
	}
	node.until("what each was told last is what REST says", func() bool {
		all = follow()
		return !slices.ContainsFunc(all, func(f followed) bool { return !maps.Equal(f.Accounts, want) || !maps.Equal(f.Members, want) })
	})
	for _, f := range all {
		if f.Starts < 3 || f.Wrong != "" {
			t.Errorf("%s has connected %d times, want 3 and more; what is wrong: %q", f.Name, f.Starts, f.Wrong)
		}
	}
}

// following is a source whose node is at a slot.
type following ledger.Slot

func (f following) Upstream() upstream.Snapshot {
	return upstream.Snapshot{UpstreamSlot: ledger.Slot(f)}
}

func TestHowFarTheSourceIsAheadIsTold(t *testing.T) {
	head := &ledger.Head{HasBlock: true}
	head.Tips[ledger.Processed].Slot = 7
	var unknown ledger.Opt[ledger.Slot]
	for _, tt := range []struct {
		from any
		head *ledger.Head
		want ledger.Opt[ledger.Slot]
	}{
		{nil, head, unknown},
		{following(10), nil, unknown},
		{following(10), new(ledger.Head), unknown},
		{following(0), head, unknown},
		{following(7), head, unknown},
		{following(10), head, ledger.Some[ledger.Slot](3)},
	} {
		ledgertest.Equal(t, slotsBehind(tt.from, tt.head), tt.want, "%v ahead of %+v", tt.from, tt.head)
	}
}
