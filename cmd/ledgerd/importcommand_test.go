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

// recordSim returns what the simulator emits, as event lines. In front of some blocks another
// one takes their slot and is called dead.
func recordSim(t *testing.T, spec string) (lines []byte) {
	t.Helper()
	sim, err := source.Open(spec, quietLog())
	must(t, err)
	add := func(e ledger.Event) { lines = file.AppendEventLine(lines, e) }
	blocks := 0
	err = sim.Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
		if b, ok := e.(*ledger.Block); ok {
			if blocks++; blocks%3 == 0 {
				dead := *b
				dead.Blockhash = toolHash(b.Slot)
				add(&dead)
				add(&ledger.SlotStatus{Slot: b.Slot, Status: ledger.StatusDead, Blockhash: ledger.Some(dead.Blockhash)})
			}
		}
		add(e)
		return nil
	})
	must(t, err)
	return lines
}

// A node that imports an archive of a ledger at one slot, and then reads the rest of that ledger,
// ends with the same state as one that read all of it.
func TestImportedNodeEndsAsTheStraightRun(t *testing.T) {
	t.Parallel()
	const simulated = "seed=5,accounts=150,slot_time=0,tps=50,fork_rate=0.25,skip_rate=0.2,finality=8,slots=80"
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, os.WriteFile(whole, recordSim(t, "sim:"+simulated), 0o600))
	straight := start(t, "--data-dir", t.TempDir(), "--source", "file:"+whole)
	want := stateHashField.FindString(straight.ending(t))
	straight.stop()

	l, err := nodetest.Simulated(simulated, nodetest.Plan{})
	must(t, err)
	early, half := l.Main()[len(l.Main())/4], l.Main()[len(l.Main())/2]
	full, earlier, changes := archiveOfNode(t, l, nil, half), archiveOfNode(t, l, nil, early), archiveOfNode(t, l, early, half)
	for name, archives := range map[string][]string{"full": {"--archive", full}, "incremental": {"--archive", earlier, "--incremental", changes}} {
		dir := filepath.Join(t.TempDir(), "new")
		toolSays(t, exitOK, "", append([]string{"import", "--data-dir", dir}, archives...)...)
		toolSays(t, exitOK, "", "snapshot", "verify", "--data-dir", dir)
		for range 2 { // the second time there is nothing new
			n := start(t, "--data-dir", dir, "--source", "file:"+whole)
			ledgertest.Equal(t, stateHashField.FindString(n.ending(t)), want, "after the import of a %s archive", name)
			n.stop()
		}
	}
	for _, wrong := range [][]string{{"--archive", changes}, {"--archive", full, "--incremental", changes}, {"--archive", earlier, "--incremental", full}} {
		dir := filepath.Join(t.TempDir(), "new")
		toolSays(t, exitUsage, "", append([]string{"import", "--data-dir", dir}, wrong...)...)
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
