package cluster

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger/ledgertest"
)

// TestServers runs what needs three servers: what leaves them alone on the same three, what does not on three of its own.
func TestServers(t *testing.T) {
	t.Parallel()
	t.Run("side by side", func(t *testing.T) {
		t.Parallel()
		s := natstest.Start(t, 3)
		tests := map[string]func(*rig){
			"a commit is followed":                   testCommitIsFollowed,
			"an unfinished commit is nothing":        testUnfinishedCommitIsNothing,
			"a lost acknowledgement is looked up":    testLostAcknowledgement,
			"a standby takes over":                   testStandbyTakesOver,
			"a stream that changed is named":         testChangedStreamIsNamed,
			"a repeated message is refused":          testRepeatedMessageIsRefused,
			"another record is named":                testOtherRecordIsNamed,
			"how servers sync is proven":             testSyncIsProven,
			"a stream begins where its writer stood": testStreamBeginsWhereItsWriterStands,
			"a stream that forgets is refused":       testStreamThatForgetsIsRefused,
			"reads are of the leader":                testReadsAreTheLeaders,
		}
		pairs, rounds := races(t)
		for seed := range pairs {
			tests[fmt.Sprint("writers race ", seed)] = func(r *rig) { testWritersRace(r, seed, rounds) }
		}
		for name, run := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(newRig(t, s, strings.ReplaceAll(name, " ", "-")))
			})
		}
	})
	for name, runs := range map[string][]func(*rig){
		"cut off": {testMinorityDoesNotCommit, testServerThatIsBehindIsAlone},
		"killed":  {testServersAreKilled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := natstest.Start(t, 3)
			for i, run := range runs {
				s.WaitReady()
				run(newRig(t, s, fmt.Sprint("log-", i)))
			}
		})
	}
}

func testCommitIsFollowed(r *rig) {
	w := r.follow(Config{NodeID: "w", MayWrite: true, Facts: []byte("facts")}, nil)
	w.becomesWriter()
	reader := r.reader("r")
	for i := range 20 {
		w.mustCommit(1+i%3, i*i*20)
	}
	reader.waitFor(w.version())
	// A server forgets a reader's consumer, as it does when it is started again.
	stream := w.Log().stream
	for consumer := range stream.ConsumerNames(r.Context()).Name() {
		must(r, stream.DeleteConsumer(r.Context(), consumer))
	}
	w.mustCommit(1, 1)
	reader.mustReach(w)
	id, facts, err := reader.Facts(r.Context())
	ledgertest.MustHold(r, err == nil && id != "" && string(facts) == "facts", "Facts() = %q, %q, %v", id, facts, err)
	// From some places: a node may stand in the middle of a commit.
	for _, at := range []int{0, 1, 2, 3, 17, 18, 19, len(w.has())} {
		n := r.follow(Config{LedgerID: id}, w.has()[:at])
		n.mustReach(w)
		n.Close()
	}
}

// TestHeartbeatsAreBounded hears more nodes than are remembered, and what no node sends.
func TestHeartbeatsAreBounded(t *testing.T) {
	c := &Cluster{config: Config{NodeID: "a0"}, process: "me", peers: make(map[string]peer)}
	c.log = &Log{cluster: c}
	c.stats.register(metrics.NewSet())
	for i := range maxPeers + 10 {
		c.heard(fmt.Appendf(nil, `{"node":"n","process":"p%d"}`, i))
	}
	ledgertest.Equal(t, c.Peers(), maxPeers, "peers")
	c.heard([]byte(`{"process":"me"}`))
	before := c.stats.gossipRefused.Get()
	for _, bad := range []string{"", "{", "[]", `{"node":"n"}`, `{"process":1}`} {
		c.heard([]byte(bad))
	}
	c.heard(append(bytes.Repeat([]byte(" "), maxHeartbeatBytes), `{"process":"p"}`...))
	if got := c.stats.gossipRefused.Get() - before; before != 10 || got != 6 || c.Peers() != maxPeers {
		t.Errorf("%d and %d heartbeats were refused, want 10 and 6; %d peers", before, got, c.Peers())
	}
	if w := c.writer(); w.Node != "" {
		t.Errorf("%v writes, of nodes that do not say so", w)
	}
	for _, writer := range []string{`"a2","process":"p1","role":"writer","epoch":3`, `"a1","process":"p2","role":"writer","epoch":4`, `"\"}","process":"p3","role":"writer","epoch":5`} {
		c.heard([]byte(`{"node":` + writer + `}`))
	}
	if w := c.writer(); w.Node != "a1" || w.Epoch != 4 { // the other does not know yet
		t.Errorf("%v writes, want a1 in its epoch 4", w)
	}
	c.peers = map[string]peer{"old": {heartbeat{Node: "old", Role: "writer", Epoch: 9}, time.Now().Add(-peerTimeout)}}
	if w := c.writer(); w.Node != "" {
		t.Errorf("%v writes, which was not heard of for long", w)
	}
	ledgertest.Equal(t, c.Peers(), 0, "peers, of which one was not heard of for long")
}

// TestLagOfEachMemberIsTold hears nodes that tell how far they are behind, one that does not, one of no role, and both processes of one.
func TestLagOfEachMemberIsTold(t *testing.T) {
	c := &Cluster{config: Config{NodeID: "a0"}, process: "me", peers: make(map[string]peer)}
	c.log = &Log{cluster: c}
	c.stats.register(metrics.NewSet())
	for i, h := range []string{
		`"a1","role":"standby","lag":1.5`, `"a1","role":"standby","lag":0.5`, `"a2","role":"reader","lag":-7`, `"a3","role":"king","lag":3`, `"a4","role":"reader"`,
	} {
		c.heard(fmt.Appendf(nil, `{"process":"p%d","node":%s}`, i, h))
	}
	c.heard([]byte(`{"process":"p9","node":"a9","role":"reader","lag":1e999}`)) // no number
	var b strings.Builder
	c.writeLags(&b)
	var got []string
	for line := range strings.Lines(b.String()) {
		if labels, ok := strings.CutPrefix(line, "ledgerd_cluster_member_lag_seconds"); ok && !strings.Contains(line, `"a0"`) {
			got = append(got, labels)
		}
	}
	ledgertest.Equal(t, strings.Join(got, ""), "{node=\"a1\",role=\"standby\"} 1.500\n{node=\"a2\",role=\"reader\"} 0.000\n", "lags")
	if !strings.Contains(b.String(), `{node="a0",role="reader"} `) {
		t.Errorf("%q does not tell of the node itself", b.String())
	}
}
