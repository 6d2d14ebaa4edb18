package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ledgerd/bench/proc"
	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger/ledgertest"
)

// F8, F53: replicas begin with snapshots that another one offers. One has nothing on its disk, and the log does not go back to its
// beginning any more: it waits while nobody gives it a snapshot, and says so. Two were away, or cut off, until the log was purged past what
// they held: they say so, set that aside and never go on
// from where they stood. One that runs goes on to answer what it holds while it is cut off, and is not ready; it begins anew for what it missed,
// in its process. The last one finds that the newest snapshot has other bytes on all nodes, and begins with the older one.
func TestReplicasBeginWithSnapshots(t *testing.T) {
	t.Parallel()
	r := newClusterRig(t, "finality=4,accounts=500,tps=200,slot_time=40ms")
	ingester := r.add(roleIngest, "--snapshot-interval", "0s")
	maker := r.add(roleReplica, "--snapshot-interval", "300ms", "--ops-listen", freeAddress(t)) // it is asked there after a restart, too
	proxy := natstest.NewProxy(t, r.servers.Addr(2))
	away := r.add(roleReplica, "--snapshot-interval", "0s")
	cutOff := r.addIn("", roleReplica, "nats://"+proxy.Addr()+"/LEDGER", "--snapshot-interval", "0s", "--max-lag", "1s")
	r.ready()
	proxy.Cut()
	r.until("the replica that is cut off is not ready", func() bool {
		v := cutOff.running()
		a, err := v.ask(v.ops + "/readyz")
		return err == nil && a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "behind the shared log") && strings.Contains(a.body, "not connected to a server of the cluster")
	})
	away.turn(false)
	last := 0.0   // of the log when they were gone, or later
	for range 3 { // what is known, an answer that may have been on its way, one to a question after that
		r.until("the log's end is asked for anew", func() bool {
			before := last
			last = maker.metric("ledgerd_cluster_log_last_sequence")
			return last > before
		})
	}
	stale := cutOff.running().get("/accounts/program/" + simPrograms[0]) // it has shown by now what it had been sent
	r.until("the log is purged past them", func() bool { return maker.metric("ledgerd_cluster_log_first_sequence") > last+1 })
	r.until("two snapshots are offered", func() bool { return maker.metric("ledgerd_cluster_snapshot_offers_total") >= 2 })

	again := cutOff.running().get("/accounts/program/" + simPrograms[0])
	if slot := again.header.Get("X-Ledger-Slot"); again.status != http.StatusOK || slot == "" || slot != stale.header.Get("X-Ledger-Slot") {
		t.Errorf("what is cut off answers with %d, of slot %s, and before of slot %s", again.status, slot, stale.header.Get("X-Ledger-Slot"))
	}
	if !maker.isReady() {
		t.Error("a replica that is not cut off is not ready")
	}

	// Nobody purges the log while they begin: on a slow machine they could be left behind twice.
	maker.turn(false)
	maker.args = append(maker.args, "--snapshot-interval", "0s")
	fresh := r.add(roleReplica, "--snapshot-interval", "0s")
	r.until("a replica that nobody gives a snapshot waits for one, and says so", func() bool {
		return fresh.metric("ledgerd_cluster_snapshot_fetch_failures_total") > 0 && strings.Contains(fresh.said(), "cannot begin before another one gives it a snapshot")
	})
	maker.turn(true)
	proxy.Heal()
	away.turn(true)
	for _, n := range []*clusterNode{away, cutOff, fresh} {
		r.until(n.name+" begins with a snapshot", func() bool { return n.metric("ledgerd_cluster_snapshot_fetches_total") == 1 })
		r.until(n.name+" is ready", n.isReady)
	}
	here := ingester.metric(`ledgerd_slot{commitment="finalized"}`)
	r.until("a fresh replica follows", func() bool { return fresh.metric(`ledgerd_slot{commitment="finalized"}`) > here })
	all, err := filepath.Glob(filepath.Join(datadir.SnapshotDir(fresh.dir), "*.state"))
	if err != nil || len(all) != 1 {
		t.Fatalf("a replica began with %v, %v", all, err)
	}
	state := filepath.Base(all[0])
	var restored []func()
	for _, n := range r.nodes[1:] {
		restored = append(restored, harm(t, filepath.Join(datadir.SnapshotDir(n.dir), state)))
	}
	refuses := r.add(roleReplica, "--snapshot-interval", "0s")
	r.until(refuses.name+" is ready", refuses.isReady)
	if refuses.metric("ledgerd_cluster_snapshot_fetches_total") != 1 || refuses.metric("ledgerd_cluster_snapshot_parts_bad_total") == 0 {
		t.Errorf("%s did not refuse a part and begin with a snapshot", refuses.name)
	}
	ledgertest.Contains(t, refuses.said(), "tries an older one", "what %s says", refuses.name)
	held, err := filepath.Glob(filepath.Join(datadir.SnapshotDir(refuses.dir), "snapshot-*"))
	if err != nil || len(held) != 1 || filepath.Base(held[0]) == state {
		t.Errorf("%s holds %v (%v), want the older snapshot alone", refuses.name, held, err)
	}
	for _, restore := range restored {
		restore()
	}
	r.until("the maker of snapshots is ready again", maker.isReady)
	for _, n := range r.nodes {
		r.until(n.name+" counts the others", func() bool { return n.metric("ledgerd_cluster_peers") == float64(len(r.nodes)-1) })
	}
	r.stop()
	r.sameRecords()
	verified(t, fresh.dir)
	away.setAside("it is set aside")
	cutOff.setAside("it is set aside", "begins anew")
}

// freeAddress returns where processes of the test can listen, again and again, and nobody else is given.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, held, err := proc.FreeAddress()
	must(t, err)
	t.Cleanup(func() { held.Close() })
	return free.String()
}

// harm puts other bytes into a file until it is restored.
func harm(t *testing.T, path string) (restore func()) {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, make([]byte, len(content)), 0o600))
	return func() { must(t, os.WriteFile(path, content, 0o600)) }
}

// setAside checks that the node said what it did, set aside what it held, and did not go on from there.
func (n *clusterNode) setAside(words ...string) {
	t := n.rig.T
	t.Helper()
	aside := records(t, datadir.LogDir(n.dir)+".behind")
	held := aside[len(aside)-1].Version
	for _, word := range append(words, "holds_version="+strconv.Itoa(int(held))) {
		ledgertest.Contains(t, n.said(), word, "what %s says", n.name)
	}
	if now := records(t, datadir.LogDir(n.dir)); len(now) == 0 || now[0].Version <= held {
		t.Errorf("%s: its log has %d records and does not begin behind record %d, which it held", n.name, len(now), held)
	}
	_, err := os.Stat(datadir.SnapshotDir(n.dir) + ".behind")
	must(t, err)
}
