package cluster

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"ledgerd/engine/ledger"
)

const (
	announceEvery = time.Second
	// seenWithin is how long ago a member was heard of at most.
	seenWithin = 3 * time.Second
	// maxMembers bounds who is remembered. Who comes when there are so many is not counted until another one is gone.
	maxMembers     = 256
	maxLineBytes   = 1 << 10
	maxTextBytes   = 64 // of each text in a line
	gossipMessages = 1024
	gossipBytes    = 8 << 20
)

// Member is what a node says of itself, each second.
type Member struct {
	Node    string         `json:"node"`
	Role    string         `json:"role"`
	Release string         `json:"release"` // of its program
	Version ledger.Version `json:"version"`
	Slot    ledger.Slot    `json:"slot"`
	Seq     ledger.Seq     `json:"seq"`
	Lag     time.Duration  `json:"lag"`
	Ready   bool           `json:"ready"`

	Seen time.Time `json:"-"` // when it was heard of last, by this node's clock
}

// line is a member as it is sent.
type line struct {
	Member
	Process string `json:"process"` // that sent it: a node that starts again is another
	Gone    bool   `json:"gone,omitempty"`
}

// members are the other nodes that were heard of.
type members struct {
	mu   sync.Mutex
	seen map[string]Member // by process
}

// Announce lets the others know of this node until Close: self returns its line, without the node's name. It may be called
// once.
func (c *Cluster) Announce(self func() Member) error {
	if err := c.listen(".members", c.heard); err != nil {
		return err
	}
	c.running.Go(func() {
		ticker := time.NewTicker(announceEvery)
		defer ticker.Stop()
		for {
			c.announce(line{Member: self(), Process: c.process})
			select {
			case <-ticker.C:
			case <-c.ctx.Done():
				c.announce(line{Process: c.process, Gone: true})
				return
			}
		}
	})
	return nil
}

// listen has hear called with what the nodes tell each other under a subject, of which a bounded amount waits.
func (c *Cluster) listen(subject string, hear func([]byte)) error {
	sub, err := c.conn.Subscribe(c.config.Stream+subject, func(m *nats.Msg) { hear(m.Data) })
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(gossipMessages, gossipBytes)
}

func (c *Cluster) announce(l line) {
	l.Node = c.config.NodeID
	b, err := json.Marshal(l)
	if err != nil || len(b) > maxLineBytes {
		c.stats.gossipRefused.Add(1)
		return
	}
	_ = c.conn.Publish(c.config.Stream+".members", b) // without a connection nobody hears of it
}

// heard takes note of what a node said.
func (c *Cluster) heard(b []byte) {
	var l line
	if len(b) > maxLineBytes || json.NewDecoder(bytes.NewReader(b)).Decode(&l) != nil ||
		l.Process == "" || l.Node == "" || max(len(l.Node), len(l.Role), len(l.Release), len(l.Process)) > maxTextBytes {
		c.stats.gossipRefused.Add(1)
		return
	}
	if l.Process == c.process {
		return
	}
	m := &c.members
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if l.Gone {
		delete(m.seen, l.Process)
		return
	}
	m.forgetLocked(now)
	if _, known := m.seen[l.Process]; !known && len(m.seen) >= maxMembers {
		c.stats.gossipRefused.Add(1)
		return
	}
	l.Seen = now
	m.seen[l.Process] = l.Member
}

func (m *members) forgetLocked(now time.Time) {
	for process, member := range m.seen {
		if now.Sub(member.Seen) >= seenWithin {
			delete(m.seen, process)
		}
	}
}

// Members returns the other nodes that were heard of within three seconds, by name.
func (c *Cluster) Members() []Member {
	m := &c.members
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(time.Now())
	all := make([]Member, 0, len(m.seen))
	for _, member := range m.seen {
		all = append(all, member)
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Node, b.Node), a.Seen.Compare(b.Seen)) })
	return all
}

// Peers returns how many other nodes were heard of within three seconds.
func (c *Cluster) Peers() int {
	m := &c.members
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(time.Now())
	return len(m.seen)
}

// newProcess returns a name that no other process has.
func newProcess() string { return rand.Text() }
