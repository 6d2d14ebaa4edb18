package engine

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// heldIn returns what the files of some directories hold, by their names.
func heldIn(t *testing.T, disk vfs.FS, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range dirs {
		names, err := disk.List(dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			b, err := readFile(disk, filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(b)
		}
	}
	return all
}

// setAside opens a directory and sets aside what it holds.
func setAside(disk vfs.FS) error {
	d, err := datadir.OpenOn(disk, "data")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.SetAside()
}

// TestSettingAsideAtAnyMoment crashes at every call while what a replica holds is set aside for the second time. The next who
// opens the directory finds all of it where it was or all of it aside, and in the latter case the replica begins with a newer
// snapshot.
func TestSettingAsideAtAnyMoment(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, w, _, all := offering(t)
		begun := vfstest.NewMemory()
		for _, o := range all[:2] {
			if err := o.begin(t.Context(), begun); err != nil {
				t.Fatal(err)
			}
			c := onDisk(t, begun, Config{Shards: 1, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30}})
			last, err := c.Dir.LastVersion(t.Context())
			if least, leastErr := c.Dir.LeastVersion(); err != nil || leastErr != nil || last != o.Version || least != o.Version {
				t.Fatalf("it holds versions up to %d (%v), %d (%v) at least, want %d", last, err, least, leastErr, o.Version)
			}
			c.Dir.Close()
			if o.Version == all[0].Version {
				if err := setAside(begun); err != nil {
					t.Fatal(err)
				}
			}
		}
		here, aside := []string{datadir.LogDir("data"), datadir.SnapshotDir("data")}, []string{datadir.LogDir("data") + ".behind", datadir.SnapshotDir("data") + ".behind"}
		old := heldIn(t, begun, here...)
		kept, moved := 0, 0
		for n := 1; ; n++ {
			memory := begun.Clone()
			disk := vfstest.NewFaulty(memory, vfstest.Plan{Call: n, Fault: vfstest.Crash})
			if err := setAside(disk); !disk.Hit() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			for i, share := range []float64{0, 0.3, 0.5, 0.5, 0.5, 0.7, 1} {
				left := memory.Crash(share, uint64(100*n+i))
				d, err := datadir.OpenOn(left, "data")
				if err != nil {
					t.Fatalf("crash at call %d: %v", n, err)
				}
				d.Close()
				left = left.Crash(0, uint64(n)) // what is done is done
				what := fmt.Sprintf("crash at call %d, %d", n, i)
				if got := heldIn(t, left, here...); len(got) > 0 {
					if kept++; !maps.Equal(got, old) {
						t.Fatalf("%s: a part is held", what)
					}
					continue
				}
				if moved++; !maps.Equal(heldIn(t, left, aside...), old) {
					t.Fatalf("%s: not all of it is aside", what)
				}
				beginsAnew(t, what, left, &all[3], l, w)
			}
		}
		t.Logf("%d times all was kept, %d times it was aside", kept, moved)
		if kept == 0 || moved == 0 {
			t.Error("no crash came before, or none behind, the note")
		}
		w.mustStop()
	})
}

// beginsAnew lets a replica begin with a snapshot in a directory that was emptied.
func beginsAnew(t *testing.T, what string, disk *vfstest.Memory, o *offered, l *sharedLedger, w clusterNode) {
	t.Helper()
	if err := o.begin(t.Context(), disk); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	c := onDisk(t, disk, Config{Shards: 2, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30}, Logger: slog.New(slog.DiscardHandler)})
	replica := startMember(t, l, nil, c)
	same(t, what, w.Engine, replica.Engine)
	replica.mustStop()
	c.Dir.Close()
}

// TestOnlyAClusterSetsAside asks it of a directory that holds a ledger of its own.
func TestOnlyAClusterSetsAside(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n := startNode(t, live(), onDisk(t, disk, Config{Shards: 1}))
		n.send(rootBlock(100))
		n.mustStop()
		before := heldIn(t, disk, datadir.LogDir("data"), datadir.SnapshotDir("data"))
		if err := n.config.Dir.SetAside(); err == nil || !maps.Equal(before, heldIn(t, disk, datadir.LogDir("data"), datadir.SnapshotDir("data"))) {
			t.Errorf("err = %v, %d files were held", err, len(before))
		}
		if v, err := n.config.Dir.LastVersion(t.Context()); err != nil || v != n.Head().Tips[0].Version {
			t.Errorf("the newest record is %d, %v", v, err)
		}
		n.config.Dir.Close()
	})
}
