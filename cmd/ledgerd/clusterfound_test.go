package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// A node that was alone founds a cluster with its ledger. Another node begins with its snapshot, also where it came before there was
// one, and holds what the founder does; another ingester takes its place. A node with another ledger of its own is refused.
func TestANodeFoundsAClusterWithItsOwnLedger(t *testing.T) {
	t.Parallel()
	r := newClusterRig(t, "finality=4,accounts=500,tps=500,slot_time=20ms")
	dirs := []string{filepath.Join(keptDir(t), "founder"), filepath.Join(keptDir(t), "other")}
	for _, dir := range dirs {
		alone := launch(r, "--data-dir", dir, "--source", r.source)
		alone.listened().until("the node that is alone has final blocks", func() bool { return alone.metric(`ledgerd_slot{commitment="finalized"}`) >= 10 })
		alone.stop()
	}
	early := r.add(roleReplica)
	founder := r.addIn(dirs[0], roleAll, r.log, "--snapshot-interval", "2s")
	r.until("the early replica is ready", early.isReady)
	standby := r.add(roleIngest)
	r.ready()
	ledgertest.Equal(t, early.metric("ledgerd_cluster_snapshot_fetches_total"), 1, "the snapshots that the early replica began with")
	other := r.addIn(dirs[1], roleAll, r.log)
	r.until("another ledger is refused", func() bool { return strings.Contains(other.said(), "holds a ledger of its own") })
	other.turn(false)
	r.nodes = slices.DeleteFunc(r.nodes, func(n *clusterNode) bool { return n == other })
	founder.turn(false)
	r.until("the standby writes", func() bool { return r.writer() == standby })
	here := r.newest()
	r.until("the ledger goes on", func() bool { return r.newest() > here+10 })
	founder.turn(true)
	r.until("the founder follows", founder.isReady)
	r.stop()
	r.sameRecords()
}
