package cluster

import (
	"encoding/json"
	"maps"
	"sync"
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
	maxProcessBytes   = 64
)

// heartbeat is what a node sends to all others each second. Programs before this one ask for a node, and send more.
type heartbeat struct {
	Node    string `json:"node"`
	Process string `json:"process"` // a node that starts again is another one
}

// peers are the other nodes that sent a heartbeat.
type peers struct {
	mu   sync.Mutex
	seen map[string]time.Time // by process: its newest heartbeat
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
	if len(b) > maxHeartbeatBytes || json.Unmarshal(b, &h) != nil || h.Process == "" || len(h.Process) > maxProcessBytes {
		c.stats.gossipRefused.Inc()
		return
	}
	p := &c.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	switch _, known := p.seen[h.Process]; {
	case h.Process == c.process:
	case !known && p.countLocked() >= maxPeers:
		c.stats.gossipRefused.Inc()
	default:
		p.seen[h.Process] = time.Now()
	}
}

// countLocked forgets the peers whose heartbeats ceased, and returns how many there are.
func (p *peers) countLocked() int {
	maps.DeleteFunc(p.seen, func(_ string, at time.Time) bool { return time.Since(at) >= peerTimeout })
	return len(p.seen)
}

// Peers returns how many other nodes were heard of within three seconds.
func (c *Cluster) Peers() int {
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	return c.peers.countLocked()
}
