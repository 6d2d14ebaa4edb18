package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// A node that was alone founds a cluster with its ledger, of accounts with data. Another node begins with its snapshot, also where it came before
// there was one; another ingester takes its place while it stands still, and it begins anew. At the end of the ledger all answer the same,
// data included. A node with another ledger of its own is refused.
func TestANodeFoundsAClusterWithItsOwnLedger(t *testing.T) {
	t.Parallel()
	r := newClusterRig(t, "finality=4,accounts=500,pools=4,tps=100,slot_time=40ms,slots=600")
	dirs := []string{filepath.Join(keptDir(t), "founder"), filepath.Join(keptDir(t), "other")}
	for _, dir := range dirs {
		alone := launch(r, "--data-dir", dir, "--source", r.source, "--data", "all")
		alone.listened().until("the node that is alone has final blocks", func() bool { return alone.metric(`ledgerd_slot{commitment="finalized"}`) >= 10 })
		alone.stop()
	}
	early := r.add(roleReplica)
	founder := r.addIn(dirs[0], roleAll, r.log, "--snapshot-interval", "2s", "--data", "all")
	r.until("the early replica is ready", early.isReady)
	standby := r.add(roleIngest, "--data", "all")
	r.ready()
	ledgertest.Equal(t, early.metric("ledgerd_cluster_snapshot_fetches_total"), 1, "the snapshots that the early replica began with")
	other := r.addIn(dirs[1], roleAll, r.log, "--data", "all")
	r.until("another ledger is refused", func() bool { return strings.Contains(other.said(), "holds a ledger of its own") })
	other.turn(false)
	r.nodes = slices.DeleteFunc(r.nodes, func(n *clusterNode) bool { return n == other })
	frozen := founder.running()
	frozen.Signal(syscall.SIGSTOP)
	r.until("the standby writes", func() bool { return standby.metric(`ledgerd_cluster_role{role="writer"}`) == 1 })
	frozen.Signal(syscall.SIGCONT)
	r.until("the founder follows", func() bool { return strings.Contains(founder.said(), "begins anew") && founder.isReady() })
	r.sameEnd()
	r.sameAnswers()
	pools := early.running().get("/accounts/program/" + poolProgram + "?include=data").body
	ledgertest.Equal(t, strings.Count(pools, `"space":160,"data":"`), 4, "pools with their data: %s", pools)
	r.stop()
	r.sameRecords()
}
