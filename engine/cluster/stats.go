package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// Role is what a node is to the log at the moment.
type Role uint8

const (
	Reader  Role = iota // it follows and never writes
	Standby             // it follows and waits for the lease
	Writer              // the log is its own
	Deposed             // it was the writer
)

// String returns the name metrics and members use.
func (r Role) String() string {
	switch r {
	case Reader:
		return "reader"
	case Standby:
		return "standby"
	case Writer:
		return "writer"
	case Deposed:
		return "deposed"
	}
	return "unknown"
}

// Stats are figures since Open.
type Stats struct {
	Connected    bool   // to a server
	Server       string // its name
	KnownServers int
	Reconnects   uint64
	Errors       uint64 // that servers or the connection reported

	Role           Role
	Epoch          uint64 // of the newest writer seen
	First, Last    uint64 // sequences of the stream, as they were told last
	LeaseLosses    uint64
	SyncProven     bool // each server that holds the stream said that it syncs each message
	MakesSnapshots bool // the node holds the lease to make snapshots

	PublishRetries                              uint64
	FeedsReopened                               uint64
	CommitsWritten, ChunksWritten, BytesWritten uint64
	CommitsRead, ChunksRead, BytesRead          uint64

	Offers, OfferFailures, Fetches, FetchFailures uint64
	PartsSent, PartsKept, PartsFetched, PartsBad  uint64

	Members       int // other nodes seen
	GossipRefused uint64
	SpentDropped  uint64
	Refused       [Damages]uint64 // messages, by kind of damage
}

// Stats returns the figures.
func (c *Cluster) Stats() Stats {
	n := &c.stats
	s := Stats{
		Connected: c.Connected(), Server: c.conn.ConnectedServerName(), KnownServers: len(c.conn.Servers()),
		Reconnects: c.conn.Stats().Reconnects, Errors: n.asyncErrors.Load(),
		Role: Role(n.role.Load()), Epoch: n.epoch.Load(), First: n.first.Load(), Last: n.last.Load(),
		LeaseLosses: n.leaseLosses.Load(), SyncProven: n.syncProven.Load(), MakesSnapshots: c.MakesSnapshots(),
		PublishRetries: n.retries.Load(), FeedsReopened: n.reopened.Load(),
		CommitsWritten: n.commitsWritten.Load(), ChunksWritten: n.chunksWritten.Load(), BytesWritten: n.bytesWritten.Load(),
		CommitsRead: n.commitsRead.Load(), ChunksRead: n.chunksRead.Load(), BytesRead: n.bytesRead.Load(),
		Offers: n.offers.Load(), OfferFailures: n.offerFailures.Load(), Fetches: n.fetches.Load(), FetchFailures: n.fetchFailure.Load(),
		PartsSent: n.partsSent.Load(), PartsKept: n.partsKept.Load(), PartsFetched: n.partsFetched.Load(), PartsBad: n.partsBad.Load(),
		Members: c.Peers(), GossipRefused: n.gossipRefused.Load(), SpentDropped: n.spentDropped.Load(),
	}
	for i := range s.Refused {
		s.Refused[i] = n.refused[i].Load()
	}
	return s
}

// Connected reports whether there is a connection to a server now.
func (c *Cluster) Connected() bool { return c.conn.Status() == nats.CONNECTED }

// Trouble returns what does not succeed at the moment, "" if nothing: a sentence for an operator.
func (c *Cluster) Trouble() string {
	var all []string
	if status := c.conn.Status(); status != nats.CONNECTED {
		why := strings.ToLower(status.String())
		if err := c.conn.LastError(); err != nil {
			why += ": " + err.Error()
		}
		all = append(all, fmt.Sprintf("not connected to a server of the cluster (%s)", why))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(append(all, slices.Sorted(maps.Values(c.trouble))...), "; ")
}
