package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source"
	"ledgerd/engine/source/file"
	"ledgerd/engine/source/nodetest"
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

// A node that imports a full and an incremental archive of a ledger at one slot, and then reads all of that ledger,
// ends with the same state as one that read it from its beginning. Archives that do not belong together are refused.
func TestImportedNodeEndsAsTheStraightRun(t *testing.T) {
	t.Parallel()
	const simulated = "seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,finality=8,slots=80"
	sim, err := source.Open("sim:"+simulated, source.Options{Log: quietLog()})
	must(t, err)
	var lines []byte
	must(t, sim.Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
		lines = file.AppendEventLine(lines, e)
		return nil
	}))
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, os.WriteFile(whole, lines, 0o600))
	straight := start(t, "--data-dir", t.TempDir(), "--source", "file:"+whole)
	want := stateHashField.FindString(straight.ending(t))
	straight.stop()

	l, err := nodetest.Simulated(simulated, nodetest.Plan{})
	must(t, err)
	early, half := l.Main()[len(l.Main())/4], l.Main()[len(l.Main())/2]
	full, earlier, changes := archiveOfNode(t, l, nil, half), archiveOfNode(t, l, nil, early), archiveOfNode(t, l, early, half)
	dir := filepath.Join(t.TempDir(), "new")
	toolSays(t, exitOK, "", "import", "--data-dir", dir, "--archive", earlier, "--incremental", changes)
	toolSays(t, exitOK, "", "snapshot", "verify", "--data-dir", dir)
	for range 2 { // the second time there is nothing new
		n := start(t, "--data-dir", dir, "--source", "file:"+whole)
		ledgertest.Equal(t, stateHashField.FindString(n.ending(t)), want, "after the import")
		n.stop()
	}
	for _, wrong := range [][]string{{"--archive", changes}, {"--archive", full, "--incremental", changes}, {"--archive", earlier, "--incremental", full}} {
		toolSays(t, exitUsage, "", append([]string{"import", "--data-dir", filepath.Join(t.TempDir(), "new")}, wrong...)...)
	}
}

// TestRecordedAccountsAreImported holds real account data, at several slots each, against what the
// file source makes of it.
func TestRecordedAccountsAreImported(t *testing.T) {
	path := datatest.Path(t, "accounts/account-updates.json")
	content := readFile(t, path)
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
