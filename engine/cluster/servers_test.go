package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger/bubbletest"
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

// TestHeartbeatsAreHeard hears what other nodes say of themselves, a line each, and what no node sends: who is counted, who writes the log, and
// how far each is behind. Of one that begins anew both processes are heard.
func TestHeartbeatsAreHeard(t *testing.T) {
	ledgertest.Scenes(t, "testdata/heartbeats.txt", "# ", *update, func(t *testing.T, scene string) string {
		said, _, _ := strings.Cut(scene, "\n\t")
		c := listener()
		for _, line := range strings.Split(said, "\n")[1:] {
			c.heard([]byte(ledgertest.Repeated(t, line)))
		}
		var lags strings.Builder
		c.writeLags(&lags)
		c.writeHandover(&lags)
		told := fmt.Sprintf("%d peers, %d refused; %q writes, in epoch %d", c.Peers(), c.stats.gossipRefused.Get(), c.writer().Node, c.writer().Epoch)
		for line := range strings.Lines(lags.String()) {
			if labels, ok := strings.CutPrefix(line, "ledgerd_cluster_member_lag_seconds{"); ok {
				told += "\n\tbehind: {" + strings.TrimSuffix(labels, "\n")
			}
			if sample, ok := strings.CutPrefix(line, "ledgerd_cluster_handover_"); ok && !strings.HasSuffix(sample, `node=""} 0`+"\n") {
				told += "\n\thandover: " + strings.TrimSuffix(sample, "\n")
			}
		}
		return "# " + said + "\n\t" + told + "\n\n"
	})
}

// TestHeartbeatsAreBounded hears more nodes than are remembered, twice, and forgets those that are not heard of any more.
func TestHeartbeatsAreBounded(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		c := listener()
		for i := range 2 * (maxPeers + 10) {
			c.heard(fmt.Appendf(nil, `{"node":"n","process":"p%d","role":"writer","epoch":9}`, i%(maxPeers+10)))
		}
		ledgertest.Equal(t, c.Peers(), maxPeers, "peers")
		ledgertest.Equal(t, c.stats.gossipRefused.Get(), 20, "heartbeats that are refused, of nodes that are not remembered")
		time.Sleep(peerTimeout)
		ledgertest.Equal(t, c.writer().Node, "", "the writer that was not heard of for long")
		ledgertest.Equal(t, c.Peers(), 0, "peers that were not heard of for long")
		ledgertest.Equal(t, []string{c.writerIn(8), c.writerIn(9)}, []string{"", "n"}, "who wrote in epochs 8 and 9, as it is remembered")
	})
}

// TestTheWriterOfATermIsRemembered hears of the newest writer, of none in epoch 0, and of servers that came back with an older disk, so the epochs are
// lower again: what was heard of before counts until it was not heard of for as long as a peer.
func TestTheWriterOfATermIsRemembered(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		c := listener()
		said := func(node string, epoch uint64) {
			c.heard(fmt.Appendf(nil, `{"node":%q,"process":%q,"role":"writer","epoch":%d}`, node, node, epoch))
		}
		said("n0", 0)
		ledgertest.Equal(t, c.writerIn(0), "", "who wrote in epoch 0")
		said("a", 1<<63)
		time.Sleep(peerTimeout / 2)
		said("a", 1<<63)
		time.Sleep(peerTimeout - 1)
		said("b", 7)
		ledgertest.Equal(t, []string{c.writerIn(7), c.writerIn(1 << 63)}, []string{"", "a"}, "who wrote in epochs 7 and 2^63, soon after the newer was heard of")
		time.Sleep(time.Nanosecond)
		said("n0", 0)
		said("b", 7)
		ledgertest.Equal(t, []string{c.writerIn(0), c.writerIn(7), c.writerIn(1 << 63)}, []string{"", "b", ""}, "who wrote in epochs 0, 7 and 2^63, later")
	})
}

// listener returns a node that hears others.
func listener() *Cluster {
	c := &Cluster{config: Config{NodeID: "a0"}, process: "me", peers: make(map[string]peer)}
	c.log = newLog(c)
	c.log.noteEnd(time.Now().Add(time.Hour), 0) // and holds the whole log
	c.stats.register(metrics.NewSet())
	return c
}
