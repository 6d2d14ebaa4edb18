package cluster

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
	"github.com/nats-io/nats.go"

	"ledgerd/engine/figures"
)

// Role is what a node is to the log at the moment.
type Role uint8

const (
	Reader  Role = iota // it follows and never writes
	Standby             // it follows and waits for the lease
	Writer              // the log is its own
	Deposed             // it was the writer
)

var roleNames = []string{"reader", "standby", "writer", "deposed"}

// String returns the name metrics use.
func (r Role) String() string { return roleNames[r] }

// counters are what the figures of Config.Metrics are read from.
type counters struct {
	reconnects, asyncErrors, leaseLosses        *metrics.Counter
	gossipRefused                               *metrics.Counter
	commitsWritten, chunksWritten, bytesWritten *metrics.Counter
	commitsRead, chunksRead, bytesRead          *metrics.Counter
	retries, reopened                           *metrics.Counter
	refused                                     *metrics.Counter

	first, last, epoch atomic.Uint64 // sequences of the stream as they were told last, and its newest writer's epoch
	bytes, maxBytes    atomic.Uint64 // that it holds and may hold, likewise; 0: as many as there is room for
	role               atomic.Uint32
	since              atomic.Int64 // when this node became the writer, in Unix seconds
	syncProven         atomic.Bool
}

// register makes the counters. Roles are fixed: but for the name of the writer no label comes from another node.
func (n *counters) register(set *metrics.Set) {
	n.reconnects = figures.Counter(set, "ledgerd_cluster_reconnects_total", "Connections to a nats-server after the first one.")
	n.asyncErrors = figures.Counter(set, "ledgerd_cluster_errors_total", "Errors that nats-servers or the connection reported.")
	n.leaseLosses = figures.Counter(set, "ledgerd_cluster_lease_losses_total", "Times the lease to write was lost.")
	n.gossipRefused = figures.Counter(set, "ledgerd_cluster_gossip_refused_total", "Messages of other nodes about themselves that made no sense.")
	n.commitsWritten = figures.Counter(set, "ledgerd_cluster_commits_written_total", "Commits this node wrote to the log.")
	n.chunksWritten = figures.Counter(set, "ledgerd_cluster_messages_written_total", "Messages that this node wrote to the log.")
	n.bytesWritten = figures.Counter(set, "ledgerd_cluster_written_bytes_total", "Bytes that this node wrote to the log.")
	n.retries = figures.Counter(set, "ledgerd_cluster_write_retries_total", "Messages that were sent again, or looked for, because no answer came.")
	n.commitsRead = figures.Counter(set, "ledgerd_cluster_commits_read_total", "Commits this node read from the log.")
	n.chunksRead = figures.Counter(set, "ledgerd_cluster_messages_read_total", "Messages that this node read from the log.")
	n.bytesRead = figures.Counter(set, "ledgerd_cluster_read_bytes_total", "Bytes that this node read from the log.")
	n.reopened = figures.Counter(set, "ledgerd_cluster_reads_reopened_total", "Times reading the log had to begin again where it was.")
	n.refused = figures.Counter(set, "ledgerd_cluster_refused_messages_total", "Messages of the log that are damaged.")
	figures.Each(set, "ledgerd_cluster_role", "gauge", "1 for what the node is to the log now.",
		"role", roleNames, func(i int) uint64 { return uint64(figures.One(uint32(i) == n.role.Load())) })
	sequence := func(n *atomic.Uint64) func() float64 { return func() float64 { return float64(n.Load()) } }
	figures.Gauge(set, "ledgerd_cluster_epoch", "Number of the newest writer's term.", sequence(&n.epoch))
	figures.Gauge(set, "ledgerd_cluster_log_first_sequence", "Oldest message of the log, as it was told last.", sequence(&n.first))
	figures.Gauge(set, "ledgerd_cluster_log_last_sequence", "Newest message of the log, as it was told last.", sequence(&n.last))
	figures.Gauge(set, "ledgerd_cluster_log_bytes", "Bytes that the log holds, as it was told last.", sequence(&n.bytes))
	figures.Gauge(set, "ledgerd_cluster_log_max_bytes", "Bytes that the log may hold, after which it takes nothing more; 0 without a bound.", sequence(&n.maxBytes))
}

// countDamage counts an error that is damage, with the sequence where it is, and returns it.
func (n *counters) countDamage(sequence uint64, err error) error {
	if damage, ok := errors.AsType[*DamageError](err); ok {
		damage.Sequence = sequence
		n.refused.Inc()
	}
	return err
}

// showGauges registers what is read of the node itself.
func (c *Cluster) showGauges(set *metrics.Set) {
	figures.Gauge(set, "ledgerd_cluster_connected", "1 while there is a connection to a nats-server.",
		func() float64 { return figures.One(c.Connected()) })
	figures.Gauge(set, "ledgerd_cluster_peers", "Other nodes that were heard of within 3 seconds.",
		func() float64 { return float64(c.Peers()) })
	figures.Each(set, "ledgerd_cluster_members", "gauge", "Nodes that were heard of within 3 seconds, this one included, by what they are to the log.",
		"role", roleNames, func(i int) (n uint64) {
			for _, member := range c.members() {
				n += uint64(figures.One(member.Role == roleNames[i]))
			}
			return n
		})
	set.RegisterMetricsWriter(c.writeLags)
	set.RegisterMetricsWriter(c.writeHandover)
	set.RegisterMetricsWriter(func(w io.Writer) {
		const name = "ledgerd_cluster_writer_start_time_seconds"
		writer := c.writer()
		figures.Head(w, name, "gauge", "When the node that writes the log became its writer, in Unix time; 0 while none says that it writes.")
		fmt.Fprintf(w, "%s{node=%q} %d\n", name, writer.Node, max(0, writer.Since.Unix()))
	})
	figures.Gauge(set, "ledgerd_cluster_lag_seconds", "For how long the node has not known that it holds the whole log.",
		func() float64 { return c.log.Behind().Seconds() })
	figures.Gauge(set, "ledgerd_cluster_sync_proven",
		"1 while each nats-server of the log says that it syncs each message; 0 where one does not, or does not tell.",
		func() float64 { return figures.One(c.stats.syncProven.Load()) })
}

// writeLags writes how far each node is behind, by its own word. Of one that begins anew both processes are heard of for a while.
func (c *Cluster) writeLags(w io.Writer) {
	const name = "ledgerd_cluster_member_lag_seconds"
	lags := make(map[string]float64)
	for _, m := range c.members() {
		if m.Lag != nil && slices.Contains(roleNames, m.Role) {
			labels := fmt.Sprintf("{node=%q,role=%q}", m.Node, m.Role)
			lags[labels] = max(lags[labels], *m.Lag)
		}
	}
	figures.Head(w, name, "gauge", "For how long each node that was heard of, this one included, has not known that it holds the whole log.")
	for _, labels := range slices.Sorted(maps.Keys(lags)) {
		fmt.Fprintf(w, "%s%s %.3f\n", name, labels, lags[labels])
	}
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
	return strings.Join(append(all, slices.Sorted(maps.Values(c.faults))...), "; ")
}
