package cluster

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	heartbeatInterval = time.Second
	// peerTimeout is how long after its newest heartbeat a peer is counted.
	peerTimeout = 3 * time.Second
	// maxPeers bounds how many are remembered. A further one is counted when another one is gone.
	maxPeers          = 256
	maxHeartbeatBytes = 1 << 10
)

// heartbeat is what a node sends to all others each second. Programs before this one ask for a node, and send more.
type heartbeat struct {
	Node    string `json:"node"`
	Process string `json:"process"` // a node that starts again is another one
}

// startHeartbeats tells the others of this node, and listens for them, until Close.
func (c *Cluster) startHeartbeats() error {
	sub, err := c.conn.Subscribe(c.config.Stream+".members", func(m *nats.Msg) { c.heard(m.Data) })
	if err == nil {
		err = sub.SetPendingLimits(1024, 1<<20) // what waits to be read beyond that is dropped
	}
	if err != nil {
		return err
	}
	b, err := json.Marshal(heartbeat{c.config.NodeID, c.process})
	if err != nil {
		panic(err) // it is all strings
	}
	c.running.Go(func() {
		for {
			_ = c.conn.Publish(sub.Subject, b) // without a connection no other node hears of this one
			if c.sleep(c.ctx, heartbeatInterval) != nil {
				return
			}
		}
	})
	return nil
}

// heard notes a heartbeat.
func (c *Cluster) heard(b []byte) {
	var h heartbeat
	there, err := c.Peers(), json.Unmarshal(b, &h)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, known := c.peers[h.Process]; {
	case err == nil && h.Process == c.process:
	case err != nil || h.Process == "" || len(b) > maxHeartbeatBytes, !known && there >= maxPeers:
		c.stats.gossipRefused.Inc()
	default:
		c.peers[h.Process] = time.Now()
	}
}

// Peers returns how many other nodes were heard of within three seconds. The others are forgotten.
func (c *Cluster) Peers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.peers, func(_ string, at time.Time) bool { return time.Since(at) >= peerTimeout })
	return len(c.peers)
}
