package main

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// F53: a replica is away, or cut off, until the log is purged past what it holds. It says so, sets that aside, begins with a snapshot and
// is ready; it never goes on from where it stood. One that runs ends for that, and is started again.
func TestReplicaThatIsPurgedPastBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"away": false, "cut off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newClusterRig(t, "finality=4,accounts=500,tps=500,slot_time=20ms")
			r.add(roleIngest, "--snapshot-interval", "0s")
			maker := r.add(roleReplica, "--snapshot-interval", "300ms")
			proxy := natstest.NewProxy(t, r.servers.Addr(2))
			away := r.addAt(roleReplica, "nats://"+proxy.Addr()+"/LEDGER", "--snapshot-interval", "0s")
			r.ready()
			if runs {
				proxy.Cut()
			} else {
				r.turnOff(away)
			}
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
			if runs {
				proxy.Heal()
			} else {
				away.turn(true)
			}
			r.until("it begins with a snapshot", func() bool { return away.is("ledgerd_cluster_snapshot_fetches_total", "1") })
			r.until("it is ready again", away.isReady)
			maker.turn(true)
			r.until("the maker of snapshots is ready again", maker.isReady)
			r.stop()
			r.sameRecords()
			held := lastRecord(t, datadir.LogDir(away.dir)+".behind")
			if said := away.said(); !strings.Contains(said, "it is set aside") || !strings.Contains(said, "holds_version="+strconv.Itoa(int(held))) ||
				strings.Contains(said, "start this node again") != runs {
				t.Errorf("it did not say that version %d is set aside, or how:\n%s", held, said)
			}
			first := ledger.Version(0)
			_, err := wal.Replay(t.Context(), vfs.Disk{}, datadir.LogDir(away.dir), 0, func(commit []wal.Entry) error {
				first = cmp.Or(first, commit[0].Record.Version)
				return nil
			}, nil)
			if err != nil || first <= held || held == 0 {
				t.Errorf("its log begins with record %d (%v), it held %d", first, err, held)
			}
			if _, err := os.Stat(datadir.SnapshotDir(away.dir) + ".behind"); err != nil {
				t.Error(err)
			}
		})
	}
}

// lastRecord returns the newest record of a log.
func lastRecord(t *testing.T, dir string) ledger.Version {
	t.Helper()
	end, err := wal.Replay(t.Context(), vfs.Disk{}, dir, 0, func([]wal.Entry) error { return nil }, nil)
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
