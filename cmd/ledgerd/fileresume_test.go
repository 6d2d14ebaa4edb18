package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source"
	"ledgerd/engine/source/file"
)

// recordSim returns what the simulator emits, as event lines. In front of some blocks another
// one takes their slot and is called dead. Statuses do not say which block they mean if
// hashes is false.
func recordSim(t *testing.T, spec string, hashes bool) [][]byte {
	t.Helper()
	sim, err := source.Open(spec, quietLog())
	must(t, err)
	var lines [][]byte
	add := func(e ledger.Event) {
		if s, ok := e.(*ledger.SlotStatus); ok && !hashes {
			e = &ledger.SlotStatus{Slot: s.Slot, Status: s.Status}
		}
		lines = append(lines, file.AppendEventLine(nil, e))
	}
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

// A node that read a part of a recording, and then the whole, ends as one that read the whole at
// once: same slot, same seq, same state. So does one that reads the rest from a second file,
// and one that finds nothing new.
func TestRecordingGoesOnWhereItWasLeft(t *testing.T) {
	t.Parallel()
	for name, hashes := range map[string]bool{"statuses with hashes": true, "statuses without": false} {
		lines := recordSim(t, "sim:seed=11,accounts=100,slot_time=0,tps=20,fork_rate=0.25,skip_rate=0.2,finality=6,slots=40", hashes)
		firstStatus := 0
		for !bytes.HasPrefix(lines[firstStatus], []byte(`{"type":"slot"`)) {
			firstStatus++
		}
		folder := t.TempDir()
		write := func(name string, lines [][]byte) string {
			path := filepath.Join(folder, name)
			must(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
			return path
		}
		read := func(dir, paths string) string {
			r := start(t, "--data-dir", dir, "--source", "file:"+paths)
			defer r.stop()
			return r.ending(t)
		}
		whole := write("whole", lines)
		want := read(t.TempDir(), whole)
		for cut := firstStatus + 1; cut < len(lines); cut += sample(29, 97) {
			old, rest := write("old", lines[:cut]), write("rest", lines[cut:])
			dir := t.TempDir()
			between := read(dir, old)
			ledgertest.Equal(t, read(dir, old), between, "%s, cut at %d: the same again ends at", name, cut)
			ledgertest.Equal(t, read(dir, old+","+rest), want, "%s, cut at %d: old and rest end at", name, cut)
			ledgertest.Equal(t, read(dir, whole), want, "%s, cut at %d: the whole after it ends at", name, cut)
		}
	}
}
