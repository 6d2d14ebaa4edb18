package main

import (
	"fmt"
	"io"

	"ledgerd/engine/cluster"
	"ledgerd/httpd/promtext"
)

// clusterMetrics writes what a node knows of its cluster, in the Prometheus text format. Roles and kinds of damage are
// fixed: nothing that another node sends is a label.
func clusterMetrics(c *cluster.Cluster, fenced func() bool) func(io.Writer) {
	return func(w io.Writer) {
		s := c.Stats()
		promtext.Value(w, "ledgerd_cluster_connected", "gauge", "1 while there is a connection to a nats-server.", one(s.Connected))
		promtext.Value(w, "ledgerd_cluster_reconnects_total", "counter", "Connections to a nats-server after the first one.", s.Reconnects)
		promtext.Value(w, "ledgerd_cluster_errors_total", "counter", "Errors that nats-servers or the connection reported.", s.Errors)
		promtext.Value(w, "ledgerd_cluster_peers", "gauge", "Other nodes that were heard of within 3 seconds.", uint64(s.Members))
		promtext.Head(w, "ledgerd_cluster_role", "gauge", "1 for what the node is to the log now.")
		for r := cluster.Reader; r <= cluster.Deposed; r++ {
			fmt.Fprintf(w, "ledgerd_cluster_role{role=%q} %d\n", r, one(s.Role == r))
		}
		promtext.Value(w, "ledgerd_cluster_epoch", "gauge", "Number of the newest writer's term.", s.Epoch)
		seconds(w, "ledgerd_cluster_lag_seconds", "For how long the node has not known that it holds the whole log.", c.Log().Behind())
		promtext.Value(w, "ledgerd_cluster_fenced", "gauge", "1 when the node came to another state than the log says and answers nothing any more.", one(fenced()))
		promtext.Value(w, "ledgerd_cluster_lease_losses_total", "counter", "Times the lease to write was lost.", s.LeaseLosses)
		promtext.Value(w, "ledgerd_cluster_makes_snapshots", "gauge", "1 while the node makes the snapshots that others begin with.", one(c.MakesSnapshots()))
		promtext.Value(w, "ledgerd_cluster_sync_proven", "gauge", "1 while each nats-server of the log says that it syncs each message; 0 where one does not, or does not tell.", one(s.SyncProven))

		promtext.Value(w, "ledgerd_cluster_log_first_sequence", "gauge", "Oldest message of the log, as it was told last.", s.First)
		promtext.Value(w, "ledgerd_cluster_log_last_sequence", "gauge", "Newest message of the log, as it was told last.", s.Last)
		promtext.Value(w, "ledgerd_cluster_commits_written_total", "counter", "Commits this node wrote to the log.", s.CommitsWritten)
		promtext.Value(w, "ledgerd_cluster_messages_written_total", "counter", "Messages of those.", s.ChunksWritten)
		promtext.Value(w, "ledgerd_cluster_written_bytes_total", "counter", "Bytes of those.", s.BytesWritten)
		promtext.Value(w, "ledgerd_cluster_write_retries_total", "counter", "Messages that were sent again, or looked for, because no answer came.", s.PublishRetries)
		promtext.Value(w, "ledgerd_cluster_commits_read_total", "counter", "Commits this node read from the log.", s.CommitsRead)
		promtext.Value(w, "ledgerd_cluster_messages_read_total", "counter", "Messages of those.", s.ChunksRead)
		promtext.Value(w, "ledgerd_cluster_read_bytes_total", "counter", "Bytes of those.", s.BytesRead)
		promtext.Value(w, "ledgerd_cluster_reads_reopened_total", "counter", "Times reading the log had to begin again where it was.", s.FeedsReopened)
		promtext.Head(w, "ledgerd_cluster_refused_messages_total", "counter", "Messages of the log that are damaged, by what is wrong.")
		for d := range cluster.Damage(cluster.Damages) {
			fmt.Fprintf(w, "ledgerd_cluster_refused_messages_total{kind=%q} %d\n", d, s.Refused[d])
		}

		promtext.Value(w, "ledgerd_cluster_snapshot_offers_total", "counter", "Snapshots this node offered to others.", s.Offers)
		promtext.Value(w, "ledgerd_cluster_snapshot_offer_failures_total", "counter", "Snapshots that could not be offered.", s.OfferFailures)
		promtext.Value(w, "ledgerd_cluster_snapshot_fetches_total", "counter", "Snapshots of others that this node fetched.", s.Fetches)
		promtext.Value(w, "ledgerd_cluster_snapshot_fetch_failures_total", "counter", "Snapshots that could not be fetched.", s.FetchFailures)
		promtext.Value(w, "ledgerd_cluster_snapshot_parts_bad_total", "counter", "Parts of snapshots that were not what they should be.", s.PartsBad)
		promtext.Value(w, "ledgerd_cluster_gossip_refused_total", "counter", "Messages of other nodes about themselves or their clients that made no sense.", s.GossipRefused)
		promtext.Value(w, "ledgerd_cluster_shared_limits_dropped_total", "counter", "Clients whose requests were not told to other nodes because there were too many at once.", s.SpentDropped)
	}
}
