package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// These tests run a cluster of processes: three nats-servers that sync every message, ingesters, replicas, and
// clients that hop between the nodes. Whatever dies, no block that was visible is lost, every node gives every
// update the same number and comes to the same state, and that is the state of a node that was alone.

// strike kills a server of the log, the writer, or any node, and says what. The first strikes are one of each kind.
func (r *clusterRig) strike(before int) string {
	r.Helper()
	kind := r.random.IntN(4)
	if before < 3 {
		kind = before
	}
	switch kind {
	case 0:
		server := r.random.IntN(3)
		r.servers.Kill(server)
		time.Sleep(between(r.random, 0, 300*time.Millisecond)) // any moment is good
		r.servers.Restart(server)
		return "server"
	case 1:
		if w := r.writer(); w != nil {
			w.kill()
			return "writer"
		}
	}
	r.nodes[r.random.IntN(len(r.nodes))].kill()
	return "node"
}

// newest returns the newest slot that any node shows.
func (r *clusterRig) newest() (slot int) {
	for _, n := range r.nodes {
		slot = max(slot, int(n.metric(`ledgerd_slot{commitment="processed"}`)))
	}
	return slot
}

// F1: servers of the log, the node that writes it and any node are killed again and again.
func TestClusterSurvivesWhateverIsKilled(t *testing.T) {
	if os.Getenv("LEDGERD_CLUSTER_HUNDREDS") == "" {
		t.Skip("killing takes the better part of a minute: make chaos")
	}
	t.Parallel()
	const ledgerOf = "fork_rate=0.15,skip_rate=0.1,finality=8,accounts=300,tps=1000,slot_time=20ms,slots=%d"
	slots := 100 * repetitions(t, "LEDGERD_CLUSTER_HUNDREDS", 1)
	r := newClusterRig(t, fmt.Sprintf(ledgerOf, slots))
	keep := []string{"--snapshot-interval", "0s"} // so that clients may have missed anything
	for range 2 {
		r.add(roleIngest, keep...)
	}
	for range 2 {
		r.add(roleReplica, keep...)
	}
	r.ready()
	hops := newCutter(t, r.random, math.MaxInt, 14, r.address) // clients hop between the nodes
	state := followGo(t, hops.address(), foldsOf())
	strikes, n := map[string]int{}, 0
	for slot := 0; slot < slots*4/5 || n < 3; slot = r.newest() { // on a slow machine the ledger may be over: something is killed all the same
		for again := true; again; again = r.random.IntN(4) == 0 { // now and then the next before the cluster has come to itself
			strikes[r.strike(n)]++
			n++
			time.Sleep(between(r.random, 0, 300*time.Millisecond)) // any moment is good
		}
		r.until("the ledger goes on", func() bool { return r.newest() > min(slot, slots*4/5) })
	}
	t.Logf("killed: %v", strikes)
	r.servers.WaitReady()
	end := r.sameEnd()
	hops.enough()
	r.nodes[len(r.nodes)-1].mustRun().agrees(state)
	t.Logf("clients hopped %d times", hops.cuts.Load())
	r.sameAnswers()
	r.stop()
	if n := r.sameRecords(); n < slots {
		t.Errorf("only %d records of %d slots are compared", n, slots)
	}
	straight := launch(t, "--data-dir", t.TempDir(), "--source", r.source)
	ledgertest.Equal(t, end, straight.ending(), "the end of the cluster, which is that of a node that was alone,")
}

// address returns where a random node that is ready listens, empty where there is none.
func (r *clusterRig) address() string {
	if n := r.nodes[rand.IntN(len(r.nodes))]; n.isReady() {
		if v := n.running(); v != nil {
			return hostOf(v.base)
		}
	}
	return ""
}

// sameAnswers compares what all nodes list, at each level, once nothing moves any more.
func (r *clusterRig) sameAnswers() {
	r.Helper()
	r.ready() // one that was killed last may have ended once more
	for _, program := range simPrograms {
		for _, level := range levels {
			path := "/accounts/program/" + program + "?limit=10000&include=data&commitment=" + level
			want := ""
			for _, n := range r.nodes {
				if a := n.mustRun().get(path); want == "" {
					want = a.body
				} else if a.body != want {
					r.Errorf("GET %s: %s answers otherwise than %s", path, n.name, r.nodes[0].name)
				}
			}
		}
	}
}

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
	wrote := fmt.Sprintf("ledgerd_cluster_writer_start_time_seconds{node=%q}", founder.id())
	r.until("the standby has heard who writes", func() bool { return standby.metric(wrote) > 0 })
	frozen := founder.running()
	frozen.Signal(syscall.SIGSTOP)
	r.until("the standby writes", func() bool { return standby.metric(`ledgerd_cluster_role{role="writer"}`) == 1 })
	frozen.Signal(syscall.SIGCONT)
	r.until("the founder follows", func() bool { return strings.Contains(founder.said(), "begins anew") && founder.isReady() })
	stored := func(block string, by *clusterNode) float64 {
		return early.metric(fmt.Sprintf("ledgerd_cluster_handover_time_seconds{block=%q,node=%q}", block, by.id()))
	}
	r.until("a replica tells from whom the standby took over, and that no block was written for a second or more", func() bool {
		last, first := stored("last", founder), stored("first", standby)
		return last > 0 && first > last+1
	})
	r.sameEnd()
	r.sameAnswers()
	pools := early.running().get("/accounts/program/" + poolProgram + "?include=data").body
	ledgertest.Equal(t, strings.Count(pools, `"space":160,"data":"`), 4, "pools with their data: %s", pools)
	r.stop()
	r.sameRecords()
}
