package cluster

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"ledgerd/engine/cluster/natstest"

	"github.com/VictoriaMetrics/metrics"
)

// testPeersAreCounted lets three nodes hear of each other, and one end.
func testPeersAreCounted(t *testing.T, s *natstest.Servers) {
	var nodes []*Cluster
	for i := range 3 {
		nodes = append(nodes, open(t, []string{s.URL(i)}, Config{Stream: "members", NodeID: fmt.Sprintf("n%d", i)}))
	}
	for _, c := range nodes {
		eventually(t, "each hears of the two others", func() bool { return c.Peers() == 2 })
	}
	nodes[2].Close()
	eventually(t, "one is gone", func() bool { return nodes[0].Peers() == 1 && nodes[1].Peers() == 1 })
}

// TestHeartbeatsAreBounded hears more nodes than are remembered, and what no node sends.
func TestHeartbeatsAreBounded(t *testing.T) {
	c := &Cluster{process: "me", peers: peers{seen: make(map[string]time.Time)}}
	c.stats.register(metrics.NewSet())
	for i := range maxPeers + 10 {
		c.heard(fmt.Appendf(nil, `{"node":"n","process":"p%d"}`, i))
	}
	if got := c.Peers(); got != maxPeers {
		t.Errorf("%d peers, want %d", got, maxPeers)
	}
	c.heard([]byte(`{"process":"p0","gone":true}`))
	c.heard([]byte(`{"process":"me"}`))
	before := c.stats.gossipRefused.Get()
	for _, bad := range []string{"", "{", "[]", `{"node":"n"}`, `{"process":"` + string(bytes.Repeat([]byte("x"), 65)) + `"}`} {
		c.heard([]byte(bad))
	}
	c.heard(append(bytes.Repeat([]byte(" "), maxHeartbeatBytes), `{"process":"p"}`...))
	if got := c.stats.gossipRefused.Get() - before; before != 10 || got != 6 || c.Peers() != maxPeers-1 {
		t.Errorf("%d and %d heartbeats were refused, want 10 and 6; %d peers", before, got, c.Peers())
	}
	c.peers.seen = map[string]time.Time{"old": time.Now().Add(-peerTimeout)}
	if c.Peers() != 0 {
		t.Error("one that was not heard of for long is counted")
	}
}
