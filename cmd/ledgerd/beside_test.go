package main

import (
	"strings"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
)

// A running node writes, begins and prunes segments while the log is read: none of that may
// be taken for damage.
func TestLogIsReadBesideItsWriter(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t, t.TempDir())
	log := writeLog(t, dir, knownCommits(), 4<<10)
	writeSnapshot(t, dir, 6, 1<<40, 1) // a node prunes only what a snapshot covers
	stop, written := make(chan struct{}), make(chan error, 1)
	go func() {
		template := knownCommits()[2][0]
		var err error
		for v := ledger.Version(7); err == nil && !closed(stop); v++ {
			r := *template
			r.Version, r.FirstSeq = v, ledger.Seq(2*v-8)
			err = log.Commit([]*ledger.Record{&r})
			if err == nil && v > 100 && v%20 == 0 {
				err = log.Prune(v - 50)
			}
		}
		written <- err
	}()
	for range sample(80, 20) {
		if out, errors, code := tool(t, "log", "verify", "--data-dir", dir); code != exitOK {
			t.Errorf("verify: exit %d, %s%s", code, out, errors)
			break
		}
		if out, errors, code := tool(t, "log", "dump", "--data-dir", dir); code != exitOK && !strings.Contains(errors, "records missing") {
			t.Errorf("dump: exit %d, %s%s", code, out, errors)
			break
		}
	}
	close(stop)
	must(t, <-written)
}

// A running node prunes snapshots, and then history, while they are listed and verified.
func TestSnapshotsPrunedMeanwhileAreNoDamage(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t, t.TempDir())
	writeSnapshot(t, dir, 2, 2, 3000)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for !closed(stop) {
			for _, command := range []string{"list", "verify"} {
				if out, errors, code := tool(t, "snapshot", command, "--data-dir", dir); code != exitOK {
					t.Errorf("%s: exit %d, %s%s", command, code, out, errors)
				}
			}
		}
	}()
	for slot := 3; slot < sample(25, 12); slot++ {
		writeSnapshot(t, dir, slot, slot, 3000)
		store, err := snapshot.OpenStore(vfs.Disk{}, datadir.SnapshotDir(dir), quietLog())
		if err == nil {
			_, err = store.Prune(t.Context(), 1, snapshot.Pace{})
		}
		if err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-done
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
