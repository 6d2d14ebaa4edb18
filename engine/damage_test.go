package engine

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// withSnapshots returns a disk with two snapshots and log behind them, and the head of the node
// that left it.
func withSnapshots(t *testing.T) (*vfstest.Memory, *ledger.Head) {
	t.Helper()
	s, _ := scripted()
	disk := vfstest.NewMemory()
	if _, err := seenOf(t, s, disk, 2); err != nil {
		t.Fatal(err)
	}
	head, err := heldBy(t, disk)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(filesOf(disk, ".state")); n != 2 {
		t.Fatalf("%d snapshots, want 2", n)
	}
	return disk, head
}

// filesOf returns the files with a suffix, oldest first.
func filesOf(disk *vfstest.Memory, suffix string) []string {
	return slices.DeleteFunc(disk.Paths(), func(name string) bool { return !strings.HasSuffix(name, suffix) })
}

// damage turns over one byte in the middle of a file.
func damage(t *testing.T, disk *vfstest.Memory, name string) {
	t.Helper()
	content, err := disk.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := len(content) / 2
	if err := disk.Overwrite(name, int64(at), []byte{content[at] ^ 0x10}); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotOfAnotherStateIsPassedOver changes the state hash in the newest snapshot, whose checksums are right.
func TestSnapshotOfAnotherStateIsPassedOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk, want := withSnapshots(t)
		all, err := snapshot.ViewStore(disk, datadir.SnapshotDir("data"), slog.New(slog.DiscardHandler)).List()
		if err != nil {
			t.Fatal(err)
		}
		forgeStateHash(t, disk, filepath.Join(datadir.SnapshotDir("data"), all[0].Name))
		c, err := scriptConfig(t, disk, 3)
		if err != nil {
			t.Fatal(err)
		}
		n := &subject{t: t, ended: make(chan struct{})}
		n.run(c, func(*ledger.Publication) bool { return false })
		synctest.Wait()
		if got := n.Head(); got == nil || got.StateHash != want.StateHash || n.Stats().Snapshot.Damaged != 1 {
			t.Errorf("stands at %+v, %d snapshots passed over; want %+v and one", got, n.Stats().Snapshot.Damaged, want)
		}
		n.mustStop()
	})
}

// TestDamagedSnapshotIsPassedOver damages, cuts or takes away snapshots and their history: the
// node answers the same from the one before, and the log is as it was. Without any it
// says so and starts nothing.
func TestDamagedSnapshotIsPassedOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk, want := withSnapshots(t)
		states, history := filesOf(disk, ".state"), filesOf(disk, ".blocks")
		tests := map[string]struct {
			harm   func(*vfstest.Memory)
			refuse string
		}{
			"the newest":             {func(d *vfstest.Memory) { damage(t, d, states[1]) }, ""},
			"the newest, to nothing": {func(d *vfstest.Memory) { d.WriteFile(states[1], nil) }, ""},
			"the newest is gone":     {func(d *vfstest.Memory) { d.Remove(states[1]) }, ""},
			"its history":            {func(d *vfstest.Memory) { damage(t, d, history[len(history)-1]) }, ""},
			"its history is gone":    {func(d *vfstest.Memory) { d.Remove(history[len(history)-1]) }, ""},
			"both":                   {func(d *vfstest.Memory) { damage(t, d, states[0]); damage(t, d, states[1]) }, "no snapshot is whole"},
			"both are gone":          {func(d *vfstest.Memory) { d.Remove(states[0]); d.Remove(states[1]) }, "record 1"},
		}
		for name, tt := range tests {
			harmed := disk.Clone()
			tt.harm(harmed)
			log := logBytes(t, harmed)
			got, err := heldBy(t, harmed)
			switch {
			case tt.refuse != "":
				if err == nil || !strings.Contains(err.Error(), tt.refuse) {
					t.Errorf("%s: started with %v, want a refusal that says %q", name, err, tt.refuse)
				}
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case got.StateHash != want.StateHash || got.Tips != want.Tips || got.Floor != want.Floor:
				t.Errorf("%s: stands at %+v, want %+v", name, got, want)
			}
			for file, content := range log {
				if now, err := harmed.ReadFile(file); err != nil || string(now) != content {
					t.Errorf("%s: %s is not what it was, %v", name, file, err)
				}
			}
		}
	})
}

func logBytes(t *testing.T, disk *vfstest.Memory) map[string]string {
	t.Helper()
	all := make(map[string]string)
	segments := filesOf(disk, ".wal")
	for _, name := range segments[:len(segments)-1] { // the last may be replaced: nothing is in it
		content, err := disk.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	return all
}

// TestDamagedHistoryOfAllSnapshotsCostsItsBlocks damages a file of old blocks that every snapshot
// refers to: the node answers the same, but that those blocks are pruned.
func TestDamagedHistoryOfAllSnapshotsCostsItsBlocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk, want := withSnapshots(t)
		name := filesOf(disk, ".blocks")[0]
		content, err := disk.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(content); at += 97 {
			harmed := disk.Clone()
			if err := harmed.Overwrite(name, int64(at), []byte{content[at] ^ 4}); err != nil {
				t.Fatal(err)
			}
			got, err := heldBy(t, harmed)
			if err != nil {
				t.Fatalf("byte %d: %v", at, err)
			}
			if got.StateHash != want.StateHash || got.Tips != want.Tips || got.Floor <= want.Floor || got.Floor > got.Tips[ledger.Finalized].Slot {
				t.Fatalf("byte %d: stands at %+v, want %+v with a higher floor", at, got, want)
			}
			// It goes on, and takes snapshots that are whole.
			s, m := scripted()
			if _, err := seenOf(t, s, harmed, 2); err != nil {
				t.Fatalf("byte %d: does not go on: %v", at, err)
			}
			if got, err = heldBy(t, harmed); err != nil || rightHead(m, got, m.version()) != nil {
				t.Fatalf("byte %d: at the end %+v, %v", at, got, err)
			}
		}
	})
}

// TestOnlySnapshotDamagedReplaysAll turns over every byte of the one snapshot there is: the log is
// whole and leads there from its beginning.
func TestOnlySnapshotDamagedReplaysAll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, root := diskNode(t, disk, Config{})
		n.send(events(chainOf(root, 9)...)...)
		n.mustStop()
		n.config.Dir.Close()
		name := filesOf(disk, ".state")[0]
		content, err := disk.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := range content {
			harmed := disk.Clone()
			if err := harmed.Overwrite(name, int64(at), []byte{content[at] ^ 1<<(at%8)}); err != nil {
				t.Fatal(err)
			}
			mustHold(t, harmed, root.Slot+9)
			if t.Failed() {
				t.Fatalf("byte %d of %d was turned over", at, len(content))
			}
		}
	})
}

// TestDamagedLogRefusesTheStart turns over a byte of the log behind the snapshots: the node
// names the file, the place and what there is to go back to.
func TestDamagedLogRefusesTheStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk, _ := withSnapshots(t)
		segments := filesOf(disk, ".wal")
		const header = 80
		name := segments[len(segments)-1]
		if content, err := disk.ReadFile(name); err == nil && len(content) == header {
			name = segments[len(segments)-2] // the last that holds records
		}
		damage(t, disk, name)
		_, err := heldBy(t, disk)
		var corrupt *wal.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("started with %v, want a refusal", err)
		}
		for _, want := range []string{filepath.Base(name), "slot", ".state"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not name %s", err, want)
			}
		}
	})
}

// TestRecoveryTellsHowFarItIs holds up the reading of a snapshot: health says what is being done,
// questions are refused, and figures can be had.
func TestRecoveryTellsHowFarItIs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory, want := withSnapshots(t)
		gate := make(chan struct{})
		armed := false
		disk := vfstest.NewFaulty(memory, vfstest.Plan{Before: func(c vfstest.Call) {
			if armed && c.Kind == vfstest.KindReadAt && strings.HasSuffix(c.Name, ".blocks") {
				<-gate
			}
		}})
		armed = true
		n := startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
		synctest.Wait()
		time.Sleep(time.Second)
		if s := n.Status(); !strings.Contains(s.Unhealthy, "recovering") || s.NotReady != ledger.ErrRecovering {
			t.Errorf("status %+v during recovery", s)
		}
		if _, v, err := n.Account(ledger.Query{}, key(1)); err != ledger.ErrRecovering || v.Head != nil {
			t.Errorf("an account during recovery: %v, want %v", err, ledger.ErrRecovering)
		}
		n.Stats()
		close(gate)
		synctest.Wait()
		if n.Head() == nil || n.Head().StateHash != want.StateHash || n.Progress() != (Progress{}) {
			t.Errorf("recovered to %+v, progress %+v", n.Head(), n.Progress())
		}
		n.mustStop()
	})
}
