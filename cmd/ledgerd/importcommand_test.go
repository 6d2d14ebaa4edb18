package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
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
	straight := launch(t, "--data-dir", t.TempDir(), "--source", "file:"+whole)
	want := stateHashField.FindString(straight.ending())

	l, err := nodetest.Simulated(simulated, 0)
	must(t, err)
	early, half := l.Main()[len(l.Main())/4], l.Main()[len(l.Main())/2]
	full, earlier, changes := archiveOfNode(t, l, nil, half), archiveOfNode(t, l, nil, early), archiveOfNode(t, l, early, half)
	dir := filepath.Join(t.TempDir(), "new")
	toolSays(t, exitOK, "", "import", "--data-dir", dir, "--archive", earlier, "--incremental", changes)
	toolSays(t, exitOK, "", "snapshot", "verify", "--data-dir", dir)
	for range 2 { // the second time there is nothing new
		n := launch(t, "--data-dir", dir, "--source", "file:"+whole).ready()
		ledgertest.Equal(t, stateHashField.FindString(n.ending()), want, "after the import")
		n.stop()
	}
	for _, wrong := range [][]string{{"--archive", changes}, {"--archive", full, "--incremental", changes}, {"--archive", earlier, "--incremental", full}} {
		toolSays(t, exitUsage, "", append([]string{"import", "--data-dir", filepath.Join(t.TempDir(), "new")}, wrong...)...)
	}
	content, err := os.ReadFile(changes)
	must(t, err)
	must(t, os.WriteFile(changes, content[:len(content)/2], 0o600))
	toolSays(t, exitFailure, "cannot import "+changes+": its ", "import", "--data-dir", filepath.Join(t.TempDir(), "new"), "--archive", earlier, "--incremental", changes)
}

// archiveOfNode writes an archive of a test node's ledger at a block.
func archiveOfNode(t *testing.T, l *nodetest.Ledger, since, at *ledger.Block) (path string) {
	t.Helper()
	a := &agavetest.Archive{Slot: uint64(at.Slot), Parent: uint64(at.ParentSlot), Blockhash: at.Blockhash, VoteAccounts: 2}
	a.Height = at.Height.Value
	s := agavetest.Storage{Slot: a.Slot, ID: 1}
	before := map[ledger.Pubkey]*ledger.AccountWrite{}
	if since != nil {
		a.Base, before = uint64(since.Slot), l.Accounts(since.Slot)
	}
	for key, w := range l.Accounts(at.Slot) {
		switch {
		case w == nil && before[key] != nil:
			s.Records = append(s.Records, agavetest.Record{Pubkey: key})
		case w != nil:
			a.Capitalization += uint64(w.Lamports)
			if !reflect.DeepEqual(w, before[key]) {
				s.Records = append(s.Records, archived(*w))
			}
		}
	}
	a.Storages = []agavetest.Storage{s}
	path, err := a.Write(t.TempDir())
	must(t, err)
	return path
}
