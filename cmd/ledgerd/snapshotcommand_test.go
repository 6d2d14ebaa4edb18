package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
)

func TestSnapshotListShowsTheNewestFirst(t *testing.T) {
	dir := newDataDir(t)
	out, errors, code := tool(t, "snapshot", "list", "--data-dir", dir)
	if code != exitOK || strings.Count(out, "\n") != 1 || errors != "" {
		t.Errorf("none: exit %d, %s, %s", code, out, errors)
	}
	old, new := writeSnapshot(t, dir, 5, 3, 2), writeSnapshot(t, dir, 8, 6, 300)
	before := listing(t, dir)
	out, errors, code = tool(t, "snapshot", "list", "--data-dir", dir)
	lines := strings.Split(out, "\n")
	if code != exitOK || len(lines) != 4 || errors != "" {
		t.Fatalf("exit %d, %s, %s", code, out, errors)
	}
	for i, want := range []string{"NAME SLOT VERSION SEQ ACCOUNTS", new + " 8 6 7 300", old + " 5 3 7 2"} {
		if words := strings.Fields(lines[i]); strings.Join(words[:5], " ") != want {
			t.Errorf("line %d: %s, want %s", i, lines[i], want)
		}
	}
	if listing(t, dir) != before {
		t.Error("listing changes the directory")
	}
	flipByte(t, filepath.Join(datadir.SnapshotDir(dir), old), -1)
	out, errors, code = tool(t, "snapshot", "list", "--data-dir", dir)
	if code != exitFailure || !strings.Contains(out, old+" is damaged at byte ") || !strings.Contains(out, new) || errors != "ledgerd: not all snapshots can be used\n" {
		t.Errorf("one damaged: exit %d, %s, %s", code, out, errors)
	}
}

func TestSnapshotVerifyFindsDamageAnywhere(t *testing.T) {
	dir := newDataDir(t)
	verify := func(wantCode int, wantOut, wantErr string, more ...string) {
		t.Helper()
		out, errors, code := tool(t, append([]string{"snapshot", "verify", "--data-dir", dir}, more...)...)
		var short []string
		for line := range strings.Lines(out) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " at byte ")
			line, _, _ = strings.Cut(line, ", state hash ")
			short = append(short, line)
		}
		if got := strings.Join(short, "\n"); code != wantCode || got != wantOut || errors != wantErr {
			t.Errorf("%q: exit %d, %q, got\n%s\nwant\n%s", more, code, errors, got, wantOut)
		}
	}
	verify(exitOK, "no snapshots", "")
	old, new := writeSnapshot(t, dir, 5, 3, 2), writeSnapshot(t, dir, 8, 6, 3000)
	oldOK := old + ": ok, 2 accounts, 0 mints, 1 history files"
	newOK := new + ": ok, 3000 accounts, 0 mints, 1 history files"
	before := listing(t, dir)
	verify(exitOK, newOK+"\n"+oldOK, "")
	verify(exitOK, oldOK, "", old)
	verify(exitFailure, "", "ledgerd: there is no snapshot of the given name in "+dir+"\n", "nonsense")
	if listing(t, dir) != before {
		t.Error("verifying changes the directory")
	}

	path := filepath.Join(datadir.SnapshotDir(dir), new)
	const said = "ledgerd: not all snapshots can be used\n"
	for _, at := range []int{0, 100, 5000, -200, -1} {
		flipByte(t, path, at)
		verify(exitFailure, new+" is damaged\n"+oldOK, said)
		verify(exitOK, oldOK, "", old)
		flipByte(t, path, at)
	}
	verify(exitOK, newOK+"\n"+oldOK, "")

	histories, err := filepath.Glob(filepath.Join(datadir.SnapshotDir(dir), "history-*"))
	if err != nil || len(histories) != 2 {
		t.Fatalf("history files %q, err = %v", histories, err)
	}
	lost := filepath.Base(histories[0]) // of the older snapshot
	flipByte(t, histories[0], 30)
	verify(exitFailure, newOK+"\n"+old+": "+lost+" is damaged", said)
	if err := os.Remove(histories[0]); err != nil {
		t.Fatal(err)
	}
	verify(exitFailure, newOK+"\n"+old+": cannot open the history of "+old+": "+lost+" is damaged", said)
}

// A running node prunes snapshots, and then history, while they are listed and verified.
func TestSnapshotsPrunedMeanwhileAreNoDamage(t *testing.T) {
	dir := newDataDir(t)
	writeSnapshot(t, dir, 2, 2, 3000)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			for _, command := range []string{"list", "verify"} {
				if out, errors, code := tool(t, "snapshot", command, "--data-dir", dir); code != exitOK {
					t.Errorf("%s: exit %d, %s%s", command, code, out, errors)
				}
			}
		}
	}()
	for slot := ledger.Slot(3); slot < 40; slot++ {
		writeSnapshot(t, dir, slot, ledger.Version(slot), 3000)
		store, err := snapshot.OpenStore(vfs.Disk{}, datadir.SnapshotDir(dir), quietLog())
		if err == nil {
			_, err = store.Prune(t.Context(), 1, snapshot.Pace{})
		}
		if err != nil {
			t.Error(err)
			break
		}
	}
	stop.Store(true)
	<-done
}
