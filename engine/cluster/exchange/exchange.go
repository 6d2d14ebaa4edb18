package exchange

import (
	"errors"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/cluster"
	"ledgerd/engine/figures"
)

var (
	// ErrNoSnapshot says that no snapshot is offered, or that one is not any more.
	ErrNoSnapshot = errors.New("no snapshot is offered")
	// ErrNotMaker says that another node makes the snapshots.
	ErrNotMaker = errors.New("another node makes the snapshots")
	// errBadPart says that what is stored is not what the manifest says.
	errBadPart = errors.New("damaged")
)

// Exchange is a node's access to the snapshots that are offered beside a stream.
type Exchange struct {
	cluster *cluster.Cluster
	config  cluster.Config

	offers, offerFailures, fetches, fetchFailures, partsBad *metrics.Counter
}

// New returns the exchange of a cluster. It registers its figures where the cluster does.
func New(c *cluster.Cluster) *Exchange {
	config := c.Config()
	set := config.Metrics
	return &Exchange{
		cluster: c, config: config,
		offers:        figures.Counter(set, "ledgerd_cluster_snapshot_offers_total", "Snapshots this node offered to others."),
		offerFailures: figures.Counter(set, "ledgerd_cluster_snapshot_offer_failures_total", "Snapshots that could not be offered."),
		fetches:       figures.Counter(set, "ledgerd_cluster_snapshot_fetches_total", "Snapshots of others that this node fetched."),
		fetchFailures: figures.Counter(set, "ledgerd_cluster_snapshot_fetch_failures_total", "Snapshots that could not be fetched."),
		partsBad:      figures.Counter(set, "ledgerd_cluster_snapshot_parts_bad_total", "Parts of snapshots that were not what they should be."),
	}
}
