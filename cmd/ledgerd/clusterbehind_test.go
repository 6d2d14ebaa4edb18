package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/datadir"
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
			away := r.addIn("", roleReplica, "nats://"+proxy.Addr()+"/LEDGER", "--snapshot-interval", "0s")
			r.ready()
			if runs {
				proxy.Cut()
			} else {
				r.turnOff(away)
			}
			last := 0.0   // of the log when it was gone, or later
			for range 3 { // what is known, an answer that may have been on its way, one to a question after that
				r.until("the log's end is asked for anew", func() bool {
					before := last
					last = maker.metric("ledgerd_cluster_log_last_sequence")
					return last > before
				})
			}
			r.until("the log is purged past it", func() bool { return maker.metric("ledgerd_cluster_log_first_sequence") > last+1 })

			// Nobody purges the log while it begins anew: on a slow machine it could be left behind twice.
			r.turnOff(maker)
			if runs {
				proxy.Heal()
			} else {
				away.turn(true)
			}
			r.until("it begins with a snapshot", func() bool { return away.metric("ledgerd_cluster_snapshot_fetches_total") == 1 })
			r.until("it is ready again", away.isReady)
			maker.turn(true)
			r.until("the maker of snapshots is ready again", maker.isReady)
			r.stop()
			r.sameRecords()
			aside := records(t, datadir.LogDir(away.dir)+".behind")
			held := aside[len(aside)-1].Version
			if said := away.said(); !strings.Contains(said, "it is set aside") || !strings.Contains(said, "holds_version="+strconv.Itoa(int(held))) ||
				runs && !strings.Contains(said, "start this node again") {
				t.Errorf("it did not say that version %d is set aside, or how:\n%s", held, said)
			}
			if now := records(t, datadir.LogDir(away.dir)); len(now) == 0 || now[0].Version <= held {
				t.Errorf("its log has %d records and does not begin behind record %d, which it held", len(now), held)
			}
			if _, err := os.Stat(datadir.SnapshotDir(away.dir) + ".behind"); err != nil {
				t.Error(err)
			}
		})
	}
}
