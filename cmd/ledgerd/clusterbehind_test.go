package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// A replica was away until the log was purged past what it holds. Started again it says so, sets that aside, begins with a
// snapshot and is ready; it never goes on from where it stood. While no server can be reached it answers what it holds.
func TestReplicaThatWasAwayTooLongBeginsAnew(t *testing.T) {
	t.Parallel()
	r := newClusterRig(t, "finality=4,accounts=500,tps=500,slot_time=20ms")
	r.add(roleIngest, "--snapshot-interval", "0s")
	maker := r.add(roleReplica, "--snapshot-interval", "300ms")
	away := r.add(roleReplica, "--snapshot-interval", "0s")
	r.ready()
	r.turnOff(away)
	held := lastRecord(t, away.dir)
	last := 0     // of the log when it was gone, or later
	for range 3 { // what is known, an answer that may have been on its way, one to a question after that
		r.until("the log's end is asked for anew", func() bool {
			now, _ := maker.metric("ledgerd_cluster_log_last_sequence")
			before := last
			last = sequence(now)
			return last > before
		})
	}
	r.until("the log is purged past it", func() bool {
		first, _ := maker.metric("ledgerd_cluster_log_first_sequence")
		return sequence(first) > last+1
	})

	// Nobody purges the log while it begins anew: on a slow machine it could be left behind twice.
	r.turnOff(maker)
	away.turn(true)
	r.until("it is ready again", away.isReady)
	if !away.is("ledgerd_cluster_snapshot_fetches_total", "1") {
		t.Error("it did not begin with a snapshot")
	}
	if said := away.said(); !strings.Contains(said, "was purged past what this node holds") || !strings.Contains(said, "holds_version="+strconv.Itoa(int(held))) {
		t.Errorf("it did not say that version %d is set aside:\n%s", held, said)
	}
	maker.turn(true)
	r.until("the maker of snapshots is ready again", maker.isReady)
	r.stop()
	r.sameRecords()
	first := ledger.Version(0)
	_, err := wal.Replay(t.Context(), vfs.Disk{}, datadir.LogDir(away.dir), 0, func(commit []wal.Entry) error {
		if first == 0 {
			first = commit[0].Record.Version
		}
		return nil
	}, nil)
	if err != nil || first <= held {
		t.Errorf("its log begins with record %d (%v), it held %d", first, err, held)
	}
	end, err := wal.Replay(t.Context(), vfs.Disk{}, datadir.LogDir(away.dir)+".behind", 0, func([]wal.Entry) error { return nil }, nil)
	if err != nil || end.Version() != held {
		t.Errorf("up to record %d is set aside (%v), it held %d", end.Version(), err, held)
	}
	if _, err := os.Stat(datadir.SnapshotDir(away.dir) + ".behind"); err != nil {
		t.Error(err)
	}
}

// lastRecord returns the newest record of a node's log.
func lastRecord(t *testing.T, dir string) ledger.Version {
	t.Helper()
	end, err := wal.Replay(t.Context(), vfs.Disk{}, datadir.LogDir(dir), 0, func([]wal.Entry) error { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return end.Version()
}

// sequence returns what a metric says, 0 where it is none.
func sequence(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
