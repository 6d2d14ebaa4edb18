package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine"
	"ledgerd/engine/datadir"
	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

var stateHashField = regexp.MustCompile(`state_hash=\S+`)

// archiveOf makes an archive of the state of a data directory at its newest finalized block, with older
// versions and deletions of its accounts strewn over storages in no order.
func archiveOf(t *testing.T, dataDir string, r *rand.Rand) *agavetest.Archive {
	t.Helper()
	dir, err := datadir.Open(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	a := &agavetest.Archive{VoteAccounts: 2}
	var accounts []ledger.AccountWrite
	mints := make(map[ledger.Pubkey]ledger.Mint)
	if err := engine.Export(t.Context(), dir, quietLog(), func(e ledger.Event) error {
		switch e := e.(type) {
		case *ledger.BaseState:
			accounts = append(accounts, e.Accounts...)
			for _, m := range e.Mints {
				mints[m.Pubkey] = m.Mint
			}
		case *ledger.Block:
			if e.Status == ledger.Finalized {
				a.Slot, a.Parent, a.Blockhash, a.Height = uint64(e.Slot), uint64(e.ParentSlot), e.Blockhash, e.Height.Value
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	storages := make([]agavetest.Storage, 20)
	for i := range storages {
		storages[i] = agavetest.Storage{Slot: a.Slot - uint64(i)/2, ID: uint64(i), Garbage: make([]byte, i%3*50)}
	}
	put := func(i int, record agavetest.Record) { storages[i].Records = append(storages[i].Records, record) }
	for _, w := range accounts {
		record := agavetest.Record{Pubkey: w.Pubkey, Lamports: uint64(w.Lamports), Owner: w.Owner, RentEpoch: w.RentEpoch}
		if w.Executable {
			record.Executable = 1
		}
		if m, ok := mints[w.Pubkey]; ok {
			record.Data = agavetest.MintData(&m)
		} else if w.Token != nil {
			record.Data = agavetest.TokenData(w.Token)
		}
		a.Capitalization += record.Lamports
		at := r.IntN(18)
		put(at, record)
		older := record
		if older.Lamports++; r.IntN(3) == 0 {
			older.Lamports = 0 // closed, and opened again later
		}
		below := at - at%2 + 2 // the first storage of an older slot
		for range r.IntN(3) {
			put(below+r.IntN(len(storages)-below), older)
		}
	}
	for n := range 30 { // closed accounts, whose older versions come before and after
		gone := agavetest.Record{Pubkey: toolKey("gone" + string(rune('a'+n)))}
		put(n%10, gone)
		gone.Lamports = 5
		put(10+n%10, gone)
	}
	r.Shuffle(len(storages), func(i, k int) { storages[i], storages[k] = storages[k], storages[i] })
	a.Storages = storages
	return a
}

// A node that imports an archive of a ledger at one slot, and then reads the rest of that ledger,
// ends with the same state as one that read all of it.
func TestImportedNodeEndsAsTheStraightRun(t *testing.T) {
	const simulated = "sim:seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,finality=8,slots="
	whole := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(whole, bytes.Join(recordSim(t, simulated+"80", true), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	straight := start(t, "--data-dir", t.TempDir(), "--source", "file:"+whole)
	want := stateHashField.FindString(straight.ending(t))
	straight.stop()

	early := t.TempDir()
	r := start(t, "--data-dir", early, "--source", simulated+"40")
	r.ending(t)
	r.stop()
	path, err := archiveOf(t, early, rand.New(rand.NewPCG(1, 2))).Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	out, errors, code := tool(t, "import", "--archive", path, "--data-dir", dir)
	if code != exitOK || out != "" || !regexp.MustCompile(`^imported \d+ accounts and \d+ mints at slot \d+ in \d+s, state hash [0-9a-f]{64}; ledgerd serve goes on from there\n$`).MatchString(errors) {
		t.Fatalf("exit %d, %s, %s", code, out, errors)
	}
	if out, errors, code = tool(t, "snapshot", "verify", "--data-dir", dir); code != exitOK {
		t.Errorf("verify: exit %d, %s, %s", code, out, errors)
	}
	for range 2 { // the second time there is nothing new
		n := start(t, "--data-dir", dir, "--source", "file:"+whole)
		if got := stateHashField.FindString(n.ending(t)); got != want {
			t.Errorf("after the import: %s, want %s", got, want)
		}
		n.stop()
	}
	if out, errors, code = tool(t, "import", "--archive", path, "--data-dir", dir); code != exitFailure || !strings.Contains(errors, "holds a ledger already") {
		t.Errorf("a second import: exit %d, %s, %s", code, out, errors)
	}
	if _, errors, code = tool(t, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "", "--data-dir", dir, "--source", "sim:slots=1"); code != exitFailure {
		t.Errorf("another ledger on it: exit %d, %s", code, errors)
	}
}

// TestRecordedAccountsAreImported holds real account data, at several slots each, against what the
// file source makes of it.
func TestRecordedAccountsAreImported(t *testing.T) {
	path := datatest.Path(t, "accounts/account-updates.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var updates []struct {
		Pubkey  string
		Slot    uint64
		Account struct {
			Lamports, RentEpoch uint64
			Owner               string
			Executable          bool
			Data                [2]json.RawMessage
		}
	}
	if err := json.Unmarshal(content, &updates); err != nil {
		t.Fatal(err)
	}
	a := &agavetest.Archive{}
	newest := make(map[ledger.Pubkey]uint64)
	for i, u := range updates {
		record := agavetest.Record{Lamports: u.Account.Lamports, RentEpoch: u.Account.RentEpoch}
		if err := json.Unmarshal(u.Account.Data[0], &record.Data); err != nil {
			t.Fatal(err)
		}
		record.Pubkey, _ = ledger.ParsePubkey(u.Pubkey)
		record.Owner, _ = ledger.ParsePubkey(u.Account.Owner)
		if u.Account.Executable {
			record.Executable = 1
		}
		a.Storages = append(a.Storages, agavetest.Storage{Slot: u.Slot, ID: uint64(i), Records: []agavetest.Record{record}})
		a.Slot = max(a.Slot, u.Slot)
		newest[record.Pubkey] = record.Lamports // they are in the order of slots
	}
	for _, lamports := range newest {
		a.Capitalization += lamports
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(a.Storages), func(i, k int) { a.Storages[i], a.Storages[k] = a.Storages[k], a.Storages[i] })
	archive, err := a.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, errors, code := tool(t, "import", "--archive", archive, "--data-dir", filepath.Join(t.TempDir(), "new"))
	r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+path)
	want := strings.TrimPrefix(stateHashField.FindString(r.ending(t)), "state_hash=")
	r.stop()
	if code != exitOK || want == "" || !strings.Contains(errors, "state hash "+want) {
		t.Errorf("exit %d, %swant state hash %s", code, errors, want)
	}
}

func TestImportRefusesInOneLine(t *testing.T) {
	good := &agavetest.Archive{Slot: 10, Parent: 9, Storages: []agavetest.Storage{{Slot: 10, ID: 1, Records: []agavetest.Record{{Lamports: 1}}}}}
	good.Capitalization = 2 // which is not what the accounts hold
	path, err := good.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(cut, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"no archive":      {[]string{"--data-dir", t.TempDir()}, exitUsage, "--archive"},
		"missing archive": {[]string{"--archive", filepath.Join(t.TempDir(), filepath.Base(path))}, exitUsage, "no such file"},
		"lz4":             {[]string{"--archive", strings.Replace(path, ".zst", ".lz4", 1)}, exitUsage, "tar.lz4"},
		"bad filter":      {[]string{"--archive", path, "--index-owners", "nonsense"}, exitUsage, "key 1"},
		"empty filter":    {[]string{"--archive", path, "--index-owners", ""}, exitUsage, "leave the flag out to hold all accounts"},
		"empty accounts":  {[]string{"--archive", path, "--index-accounts="}, exitUsage, "leave the flag out to hold all accounts"},
		"damaged":         {[]string{"--archive", cut, "--data-dir", filepath.Join(t.TempDir(), "d")}, exitFailure, "packing ends too early"},
		"not whole":       {[]string{"--archive", path, "--data-dir", filepath.Join(t.TempDir(), "d")}, exitFailure, "1 lamports"},
		"folder in use":   {[]string{"--archive", path, "--data-dir", filepath.Dir(path)}, exitFailure, "is not empty"},
		"a file":          {[]string{"--archive", path, "--data-dir", file}, exitFailure, "data directory"},
	}
	for name, tt := range tests {
		out, errors, code := tool(t, append([]string{"import"}, tt.args...)...)
		if code != tt.code || out != "" || !strings.Contains(errors, tt.want) || strings.Count(errors, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q, want exit %d and one line with %q", name, code, out, errors, tt.code, tt.want)
		}
		if strings.Count(errors, "snapshot-10-") > 1 {
			t.Errorf("%s: the archive is named more than once: %s", name, errors)
		}
	}
}

// An import that is killed leaves a directory that nobody serves, and that the next import takes.
func TestKilledImportStartsAnew(t *testing.T) {
	a := &agavetest.Archive{Slot: 50, Parent: 49}
	for slot := range uint64(50) {
		s := agavetest.Storage{Slot: slot, ID: slot}
		for n := range 4000 {
			k := ledger.Pubkey(toolKey(string(rune('A'+slot)) + string(rune(n))))
			s.Records = append(s.Records, agavetest.Record{Pubkey: k, Lamports: 1, Data: k[:]})
		}
		a.Capitalization += 4000
		a.Storages = append(a.Storages, s)
	}
	path, err := a.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := exec.CommandContext(t.Context(), binary, "import", "--archive", path, "--data-dir", dir)
	p.Env = append(os.Environ(), asProgram+"=1")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	gathered := func() bool {
		names, _ := filepath.Glob(filepath.Join(dir, "import-accounts", "*"))
		return len(names) > 0
	}
	for deadline := time.Now().Add(20 * time.Second); !gathered() && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	_ = p.Process.Signal(syscall.SIGKILL)
	if err := p.Wait(); err == nil {
		t.Skip("it was done before it could be killed")
	}
	_, errors, code := tool(t, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "", "--data-dir", dir, "--source", "none")
	if code != exitFailure || !strings.Contains(errors, "holds an import that did not finish: where none is running, run ledgerd import again") {
		t.Fatalf("serve: exit %d, %s", code, errors)
	}
	for _, args := range [][]string{{"snapshot", "list"}, {"snapshot", "verify"}, {"log", "verify"}, {"log", "dump"}, {"export"}} {
		out, errors, code := tool(t, append(args, "--data-dir", dir)...)
		if code != exitFailure || out != "" || !strings.Contains(errors, dir+" holds an import that did not finish") || strings.Count(errors, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errors)
		}
	}
	_, errors, code = tool(t, "import", "--archive", path, "--data-dir", dir)
	if code != exitOK || !strings.Contains(errors, "did not finish: what it left is removed, and it starts anew") || !strings.Contains(errors, "imported 200000 accounts") {
		t.Fatalf("import again: exit %d, %s", code, errors)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 4 {
		t.Errorf("the directory holds %v, want lock, node file, log and snapshots", names)
	}
}
