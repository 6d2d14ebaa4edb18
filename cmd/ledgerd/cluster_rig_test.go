package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// clusterRig is a cluster of real processes: nats-servers, and nodes that are started again whenever
// they end, as a supervisor does.
type clusterRig struct {
	*testing.T
	random  *rand.Rand
	servers *natstest.Servers
	log     string // as nodes are told
	source  string // of ingesters
	nodes   []*clusterNode
}

// newClusterRig starts the servers of the log.
func newClusterRig(t *testing.T, source string) *clusterRig {
	t.Helper()
	random, seed := seededRand(t)
	r := &clusterRig{T: t, random: random, servers: natstest.Start(t, 3), source: fmt.Sprintf("sim:seed=%d,%s", seed, source)}
	r.log = r.logAt(0, 1, 2)
	return r
}

// clusterNode is a node of the cluster, through all its processes.
type clusterNode struct {
	rig  *clusterRig
	name string
	args []string
	dir  string

	mu        sync.Mutex
	processes []*victim // the last one is the present one
	off       bool      // none is to run
}

// add adds a node, which begins at once.
func (r *clusterRig) add(role string, args ...string) *clusterNode {
	r.Helper()
	return r.addIn("", role, r.log, args...)
}

// addIn adds a node with a data directory, "" for a new one, which is told of some of the servers.
func (r *clusterRig) addIn(dir, role, log string, args ...string) *clusterNode {
	r.Helper()
	if dir == "" {
		dir = filepath.Join(keptDir(r.T), "data")
	}
	source := r.source
	if role == roleReplica {
		source = "none"
	}
	n := &clusterNode{rig: r, name: fmt.Sprintf("%s %d", role, len(r.nodes)), dir: dir}
	n.args = append([]string{"--data-dir", n.dir, "--source", source, "--role", role, "--log", log, "--ops-advertise", "127.0.0.1",
		"--rate-limit-exempt", "127.0.0.0/8", "--log-level", "info"}, args...)
	n.processes = []*victim{launch(r, n.args...)}
	r.nodes = append(r.nodes, n)
	return n
}

// logAt returns the address of the log by way of some servers.
func (r *clusterRig) logAt(servers ...int) string {
	var hosts []string
	for _, i := range servers {
		hosts = append(hosts, r.servers.Addr(i))
	}
	return "nats://" + strings.Join(hosts, ",") + "/LEDGER"
}

// present returns the last process of the node.
func (n *clusterNode) present() *victim { return n.processes[len(n.processes)-1] }

// turn turns the node on, or kills it and keeps it off.
func (n *clusterNode) turn(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.off = !on; n.off {
		n.present().Kill()
	}
}

// kill ends the node as a crash does. It is started again.
func (n *clusterNode) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.present().Kill()
}

// running returns the node's process, nil where none listens. A process that has ended is started again, as a supervisor does.
func (n *clusterNode) running() *victim {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.off {
		return nil
	}
	if n.present().IsGone() {
		n.processes = append(n.processes, launch(n.rig, n.args...))
	}
	v := n.present()
	if v.base == "" && !proc.Addresses.MatchString(v.out.String()) || !v.listens() {
		return nil
	}
	return v
}

// mustRun returns the node's process, which listens.
func (n *clusterNode) mustRun() *victim {
	n.rig.Helper()
	v := n.running()
	if v == nil {
		n.rig.Fatalf("%s is gone:\n%s", n.name, n.said())
	}
	return v
}

// metric returns a figure of the node, 0 where it does not answer or has none of the name.
func (n *clusterNode) metric(name string) float64 {
	v := n.running()
	if v == nil {
		return 0
	}
	all, _ := proc.Scrape(v.client, v.ops) // it may end meanwhile
	return all[name]
}

// id returns the node's identifier.
func (n *clusterNode) id() string {
	n.rig.Helper()
	var status struct {
		Node struct {
			ID string `json:"node_id"`
		} `json:"node_info"`
	}
	must(n.rig, json.Unmarshal([]byte(n.mustRun().get("/status").body), &status))
	return status.Node.ID
}

// isReady reports whether the node says so.
func (n *clusterNode) isReady() bool {
	v := n.running()
	return v != nil && v.isReady()
}

// said returns what all processes of the node said.
func (n *clusterNode) said() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	for _, v := range n.processes {
		b.WriteString(v.errs.String())
	}
	return b.String()
}

// until waits for what the cluster must come to, while all nodes are supervised.
func (r *clusterRig) until(what string, holds func() bool) {
	r.Helper()
	for late := time.Now().Add(2 * patience); !holds(); time.Sleep(50 * time.Millisecond) {
		for _, n := range r.nodes {
			n.running()
		}
		if time.Now().After(late) {
			for _, n := range r.nodes {
				r.Logf("%s said:\n%s", n.name, n.said())
			}
			r.Fatalf("it does not come true that %s", what)
		}
	}
}

// ready waits until all nodes are.
func (r *clusterRig) ready() {
	r.Helper()
	for _, n := range r.nodes {
		r.until(n.name+" is ready", n.isReady)
	}
}

// writer returns the node that writes the log, nil while there is none.
func (r *clusterRig) writer() *clusterNode {
	for _, n := range r.nodes {
		if n.metric(`ledgerd_cluster_role{role="writer"}`) == 1 {
			return n
		}
	}
	return nil
}

// sameEnd waits until an ingester has come to the end of its ledger and every node holds all of it, and returns that
// end.
func (r *clusterRig) sameEnd() string {
	r.Helper()
	end := ""
	r.until("an ingester comes to the end of its ledger", func() bool {
		for _, n := range r.nodes {
			if m := endOfInput.FindAllStringSubmatch(n.said(), -1); m != nil {
				end = m[len(m)-1][1]
				return true
			}
		}
		return false
	})
	var slot, seq float64
	if _, err := fmt.Sscanf(end, "slot=%f seq=%f", &slot, &seq); err != nil {
		r.Fatal(err)
	}
	for _, n := range r.nodes {
		r.until(n.name+" holds all of it", func() bool { return n.metric("ledgerd_seq") == seq })
	}
	return end
}

// sameRecords compares what the logs of all nodes hold, once nothing runs any more: state hashes, blocks and
// numbers of every record that two of them have. It returns how many records the longest has.
func (r *clusterRig) sameRecords() (most int) {
	r.Helper()
	all := map[ledger.Version]string{}
	for _, n := range r.nodes {
		held := records(r, datadir.LogDir(n.dir))
		for _, record := range held {
			here := fmt.Sprint(record.Kind, record.Slot, record.Hash, record.StateHash, record.FirstSeq)
			if there, known := all[record.Version]; known && there != here {
				r.Errorf("%s: record %d is %s, elsewhere %s", n.name, record.Version, here, there)
			}
			all[record.Version] = here
		}
		most = max(most, len(held))
	}
	return most
}

// records returns what a log holds.
func records(t testing.TB, dir string) (all []*ledger.Record) {
	t.Helper()
	_, err := wal.NewReader(vfs.Disk{}, dir, 0).Read(context.Background(), func(commit []wal.Entry) error {
		for i := range commit {
			all = append(all, commit[i].Record)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", dir, err)
	}
	return all
}

// stop ends all nodes as an operator does.
func (r *clusterRig) stop() {
	r.Helper()
	for _, n := range slices.Backward(r.nodes) {
		n.mu.Lock()
		if !n.off {
			n.present().stop()
		}
		n.off = true
		n.mu.Unlock()
	}
}
