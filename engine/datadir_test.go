package engine

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

func mustOpen(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDirKeepsItsNodeID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := mustOpen(t, path)
	id := d.NodeID()
	if id == "" {
		t.Error("no node id")
	}
	d.Close()
	again := mustOpen(t, path)
	defer again.Close()
	if again.NodeID() != id {
		t.Errorf("node id %q after a restart, want %q", again.NodeID(), id)
	}
	other := mustOpen(t, t.TempDir())
	defer other.Close()
	if other.NodeID() == id {
		t.Error("two directories have one node id")
	}
}

func TestDirBelongsToOneProcess(t *testing.T) {
	path := t.TempDir()
	d := mustOpen(t, path)
	if _, err := OpenDir(path); err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), path) {
		t.Errorf("opened twice: %v, want that it is in use", err)
	}
	d.Close()
	mustOpen(t, path).Close()
}

func TestDirRefusesAnotherLedger(t *testing.T) {
	path := t.TempDir()
	sim := ledger.SourceInfo{Identity: "sim:seed=1"}
	d := mustOpen(t, path)
	for name, err := range map[string]error{"source": d.BindSource(sim), "root": d.BindRoot(hash(1))} {
		if err != nil {
			t.Fatalf("the first %s is refused: %v", name, err)
		}
	}
	d.Close()
	d = mustOpen(t, path)
	defer d.Close()
	for name, err := range map[string]error{"source": d.BindSource(sim), "root": d.BindRoot(hash(1))} {
		if err != nil {
			t.Errorf("the same %s is refused: %v", name, err)
		}
	}
	for name, err := range map[string]error{"source": d.BindSource(ledger.SourceInfo{Identity: "sim:seed=2"}), "root": d.BindRoot(hash(2))} {
		if err == nil || !strings.Contains(err.Error(), "another ledger") || !strings.Contains(err.Error(), "--data-dir") {
			t.Errorf("another %s: %v, want a refusal that hints at --data-dir", name, err)
		}
	}
}

func TestDirRefusesDamagedNodeFile(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "cut": `{"node_id":"12`, "no object": `[]`, "no id": `{"source_identity":"x"}`, "zeros": "\x00\x00\x00\x00",
	} {
		path := t.TempDir()
		mustOpen(t, path).Close()
		file := filepath.Join(path, "node.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := OpenDir(path); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: opened %v, %v, want an error that names %s", name, d, err, file)
		}
		// The lock is free again: a person can put the file right and go on.
		os.Remove(file)
		mustOpen(t, path).Close()
	}
}

func TestDirLeavesNoTemporaryFiles(t *testing.T) {
	path := t.TempDir()
	d := mustOpen(t, path)
	d.BindSource(ledger.SourceInfo{Identity: "x"})
	d.BindRoot(hash(1))
	d.Close()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "LOCK" && e.Name() != "node.json" {
			t.Errorf("left %s behind", e.Name())
		}
	}
}

// TestEngineRefusesAnotherRoot starts engines over a directory: the same root goes on, another
// one ends Run, whatever kind the source is.
func TestEngineRefusesAnotherRoot(t *testing.T) {
	path := t.TempDir()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	follow := func(info ledger.SourceInfo, root *ledger.Block) error {
		d := mustOpen(t, path)
		defer d.Close()
		source := newScript(info)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := New(Config{Source: source, Dir: d, Shards: 1, Logger: quiet, OnPublish: func(*ledger.Publication) { cancel() }})
		if e.Status().NodeID != d.NodeID() {
			t.Errorf("node id %q, want the directory's", e.Status().NodeID)
		}
		go func() { source.feed <- root }()
		return e.Run(ctx)
	}
	for _, info := range []ledger.SourceInfo{finite(), live()} {
		if err := follow(info, rootBlock(100)); err != nil {
			t.Errorf("the same root: %v", err)
		}
		if err := follow(info, rootBlock(101)); err == nil || !strings.Contains(err.Error(), "another ledger") {
			t.Errorf("another root, live %v: %v, want a refusal", info.Live, err)
		}
	}
}
