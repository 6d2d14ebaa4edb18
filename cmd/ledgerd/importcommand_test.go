package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ledgerd/engine"
	"ledgerd/engine/datadir"
	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

var stateHashField = regexp.MustCompile(`state_hash=\S+`)

// archived returns the record of an account.
func archived(w ledger.AccountWrite) agavetest.Record {
	record := agavetest.Record{Pubkey: w.Pubkey, Lamports: uint64(w.Lamports), Owner: w.Owner, RentEpoch: w.RentEpoch}
	if w.Executable {
		record.Executable = 1
	}
	switch {
	case w.Mint != nil:
		record.Data = agavetest.MintData(w.Mint)
	case w.Token != nil:
		record.Data = agavetest.TokenData(w.Token)
	}
	return record
}

// archiveOf makes an archive of the state of a data directory at its newest finalized block, with older
// versions and deletions of its accounts strewn over storages in no order.
func archiveOf(t *testing.T, dataDir string, r *rand.Rand) *agavetest.Archive {
	t.Helper()
	dir, err := datadir.Open(dataDir)
	must(t, err)
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
		if m, ok := mints[w.Pubkey]; ok {
			w.Mint = &m
		}
		record := archived(w)
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
	t.Parallel()
	const simulated = "sim:seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,finality=8,slots="
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, os.WriteFile(whole, bytes.Join(recordSim(t, simulated+"80", true), nil), 0o600))
	straight := start(t, "--data-dir", t.TempDir(), "--source", "file:"+whole)
	want := stateHashField.FindString(straight.ending(t))
	straight.stop()

	early := t.TempDir()
	r := start(t, "--data-dir", early, "--source", simulated+"40")
	r.ending(t)
	r.stop()
	path, err := archiveOf(t, early, rand.New(rand.NewPCG(1, 2))).Write(t.TempDir())
	must(t, err)
	dir := filepath.Join(t.TempDir(), "new")
	if _, errors, code := tool(t, "import", "--archive", path, "--data-dir", dir); code != exitOK {
		t.Fatalf("import: exit %d, %s", code, errors)
	}
	if out, errors, code := tool(t, "snapshot", "verify", "--data-dir", dir); code != exitOK {
		t.Errorf("verify: exit %d, %s, %s", code, out, errors)
	}
	for range 2 { // the second time there is nothing new
		n := start(t, "--data-dir", dir, "--source", "file:"+whole)
		if got := stateHashField.FindString(n.ending(t)); got != want {
			t.Errorf("after the import: %s, want %s", got, want)
		}
		n.stop()
	}
}

// TestRecordedAccountsAreImported holds real account data, at several slots each, against what the
// file source makes of it.
func TestRecordedAccountsAreImported(t *testing.T) {
	path := datatest.Path(t, "accounts/account-updates.json")
	content, err := os.ReadFile(path)
	must(t, err)
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
	must(t, json.Unmarshal(content, &updates))
	a := &agavetest.Archive{}
	newest := make(map[ledger.Pubkey]uint64)
	for i, u := range updates {
		record := agavetest.Record{Lamports: u.Account.Lamports, RentEpoch: u.Account.RentEpoch}
		must(t, json.Unmarshal(u.Account.Data[0], &record.Data))
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
	must(t, err)
	_, errors, code := tool(t, "import", "--archive", archive, "--data-dir", filepath.Join(t.TempDir(), "new"))
	r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+path)
	want := strings.TrimPrefix(stateHashField.FindString(r.ending(t)), "state_hash=")
	r.stop()
	if code != exitOK || want == "" || !strings.Contains(errors, "state hash "+want) {
		t.Errorf("exit %d, %swant state hash %s", code, errors, want)
	}
}
