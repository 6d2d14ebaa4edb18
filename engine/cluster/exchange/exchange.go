package exchange

import (
	"crypto/tls"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/cluster"
	"ledgerd/engine/figures"
)

var (
	// ErrNoSnapshot says that no snapshot is offered that can be read.
	ErrNoSnapshot = errors.New("no snapshot is offered")
	// ErrNoPeer says that the node that offers a snapshot does not give a part of it.
	ErrNoPeer = errors.New("the node that offers it does not give it")
	// errBadPart says that what a peer gives is not what the manifest says.
	errBadPart = errors.New("damaged")
)

// Exchange is a node's access to the snapshots that the nodes of a cluster offer.
type Exchange struct {
	cluster *cluster.Cluster
	config  cluster.Config
	address string
	client  *http.Client
	timeout time.Duration // partTimeout; tests wait less

	right map[string][]string // hashes of parts that files held when a fetch ended with ErrNoPeer, by path; an empty one where it is another

	offering                                                atomic.Bool // the newest offer succeeded
	offers, offerFailures, fetches, fetchFailures, partsBad *metrics.Counter
}

// New returns the exchange of a cluster. It registers its figures where the cluster does. address is the URL of this node's operators' listener
// as others reach it; "": they do not, and it offers nothing. secure is used with peers that speak HTTPS; nil means the roots of the system.
func New(c *cluster.Cluster, address string, secure *tls.Config) *Exchange {
	config := c.Config()
	set := config.Metrics
	x := &Exchange{
		cluster: c, config: config, address: address, client: newClient(secure), timeout: partTimeout, right: make(map[string][]string),
		offers:        figures.Counter(set, "ledgerd_cluster_snapshot_offers_total", "Snapshots this node offered to others."),
		offerFailures: figures.Counter(set, "ledgerd_cluster_snapshot_offer_failures_total", "Snapshots that could not be offered."),
		fetches:       figures.Counter(set, "ledgerd_cluster_snapshot_fetches_total", "Snapshots of others that this node fetched."),
		fetchFailures: figures.Counter(set, "ledgerd_cluster_snapshot_fetch_failures_total", "Snapshots that could not be fetched."),
		partsBad:      figures.Counter(set, "ledgerd_cluster_snapshot_parts_bad_total", "Parts of snapshots that were not what they should be."),
	}
	figures.Gauge(set, "ledgerd_cluster_makes_snapshots", "1 while others can begin with a snapshot that this node offers.",
		func() float64 { return figures.One(x.offering.Load()) })
	return x
}

// Offers reports whether this node can offer snapshots: others reach it.
func (x *Exchange) Offers() bool { return x.address != "" }
