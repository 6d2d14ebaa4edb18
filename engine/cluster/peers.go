package cluster

import (
	"encoding/json"
	"maps"
	"strings"
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

// heartbeat is what a node sends to all others each second. Programs before this one ask for a node, and send more or less.
type heartbeat struct {
	Node    string    `json:"node"`
	Process string    `json:"process"` // a node that starts again is another one
	Role    string    `json:"role,omitempty"`
	Epoch   uint64    `json:"epoch,omitempty"` // of the newest writer
	Since   time.Time `json:"since,omitzero"`  // of a writer: when it became that
	Lag     *float64  `json:"lag,omitempty"`   // seconds for which it has not known that it holds the whole log

	Handover handover `json:"handover,omitzero"` // of a writer: how its term began
}

// peer is another node that was heard of.
type peer struct {
	heartbeat
	heard time.Time
}

// term is of a writer that was heard of, and is remembered until another one is heard of: one of an older epoch once this one was silent for
// peerTimeout, as epochs are lower again where the servers lost the end of the log.
type term struct {
	node  string
	epoch uint64
	heard time.Time
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
	log := c.log
	c.running.Go(func() {
		for {
			b, err := json.Marshal(c.itself(log))
			if err != nil {
				panic(err) // its numbers are finite, and its times within the years that JSON takes
			}
			_ = c.conn.Publish(sub.Subject, b) // without a connection no other node hears of this one
			if c.sleep(c.ctx, heartbeatInterval) != nil {
				return
			}
		}
	})
	return nil
}

// itself returns what this node tells of itself and its log.
func (c *Cluster) itself(log *Log) heartbeat {
	role, lag := Role(c.stats.role.Load()), log.Behind().Seconds()
	h := heartbeat{Node: c.config.NodeID, Process: c.process, Role: role.String(), Epoch: c.stats.epoch.Load(), Lag: &lag}
	if role == Writer {
		h.Since, h.Handover = time.Unix(c.stats.since.Load(), 0).UTC(), log.handover.Load()
	}
	return h
}

// heard notes a heartbeat.
func (c *Cluster) heard(b []byte) {
	var h heartbeat
	there, err := c.Peers(), json.Unmarshal(b, &h)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, known := c.peers[h.Process]; {
	case err == nil && h.Process == c.process:
	case err != nil || h.Process == "" || !isName(h.Node) || !isName(h.Handover.From) || len(b) > maxHeartbeatBytes, !known && there >= maxPeers:
		c.stats.gossipRefused.Inc()
	default:
		c.peers[h.Process] = peer{h, time.Now()}
		isNewest := h.Epoch >= c.wrote.epoch || time.Since(c.wrote.heard) >= peerTimeout
		if h.Role == Writer.String() && h.Epoch > 0 && isNewest {
			c.wrote = term{h.Node, h.Epoch, time.Now()}
		}
	}
}

// writerIn returns the node that said that it wrote in an epoch, if that is the term that is remembered; else "".
func (c *Cluster) writerIn(epoch uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrote.epoch != epoch {
		return ""
	}
	return c.wrote.node
}

// isName reports whether a node may be called so: identifiers are hexadecimal, and become labels of metrics.
func isName(node string) bool {
	return len(node) <= 64 && strings.Trim(node, "-0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// Peers returns how many other nodes were heard of within three seconds.
func (c *Cluster) Peers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.peersLocked())
}

// peersLocked returns the other nodes that were heard of within three seconds. The rest is forgotten.
func (c *Cluster) peersLocked() map[string]peer {
	maps.DeleteFunc(c.peers, func(_ string, p peer) bool { return time.Since(p.heard) >= peerTimeout })
	return c.peers
}

// members returns this node and its peers.
func (c *Cluster) members() []heartbeat {
	all := []heartbeat{c.itself(c.log)}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peersLocked() {
		all = append(all, p.heartbeat)
	}
	return all
}

// writer returns the node that says that it writes the log, the zero value where none does: of two, of which one does not know yet that it was
// replaced, the newer.
func (c *Cluster) writer() (w heartbeat) {
	for _, h := range c.members() {
		if h.Role == Writer.String() && h.Epoch > w.Epoch {
			w = h
		}
	}
	return w
}
