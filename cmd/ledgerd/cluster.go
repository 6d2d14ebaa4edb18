package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sync/errgroup"

	"ledgerd/engine/cluster"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source/unpack"
	"ledgerd/engine/source/upstream"
)

// Roles of a node.
const (
	roleAll     = "all"
	roleIngest  = "ingest"
	roleReplica = "replica"
)

// clusterFlags say how a node takes part in a cluster.
type clusterFlags struct {
	Log            string        `help:"The log that the nodes of a cluster share: nats://HOST:PORT[,HOST:PORT…]/STREAM, or tls://. Without it the node is alone." placeholder:"URL"`
	Role           string        `help:"What a node of a cluster does: ingest (follow the source when it is its turn), replica (follow the log; --source none), all (ingest, and offer snapshots to others as replicas do)." default:"all" enum:"ingest,replica,all"`
	MaxLag         time.Duration `help:"/readyz and /health of a node of a cluster fail when for so long it has not known that it holds all of the log. A vote among nats-servers takes up to 12 seconds." default:"15s"`
	OpsAdvertise   string        `help:"Where other nodes of the cluster reach --ops-listen, to fetch snapshots from it: a host, or HOST:PORT. By default its address, where that is neither a loopback address nor any; a node that others do not reach offers no snapshots." placeholder:"HOST[:PORT]"`
	LogReplicas    int           `help:"How many nats-servers hold the log; counts when it is made." default:"3"`
	LogCredentials string        `help:"File with the user that the nats-servers know." placeholder:"FILE"`
	LogMaxBytes    size          `help:"What the log may hold, where the account of the nats-servers asks for bounds; counts when it is made." placeholder:"SIZE"`
	LogTags        []string      `help:"Tags of the nats-servers that are to hold the log; count when it is made." placeholder:"TAG,…"`
	LogDomain      string        `help:"Domain of the JetStream that holds the log, as behind a leaf node." placeholder:"NAME"`
	LogAPIPrefix   string        `help:"Prefix of the API of the JetStream that holds the log, as of another account's." name:"log-api-prefix" placeholder:"PREFIX"`
	LogTLSCA       string        `help:"Authorities, PEM, that sign the certificates of the nats-servers; those of the system by default." name:"log-tls-ca" placeholder:"FILE"`
	LogTLSCert     string        `help:"Certificate to show to the nats-servers, PEM, where they ask for one; read again at each connection." name:"log-tls-cert" placeholder:"FILE"`
	LogTLSKey      string        `help:"Private key of --log-tls-cert, PEM." name:"log-tls-key" placeholder:"FILE"`
	LogTLSName     string        `help:"Name that the certificates of the nats-servers are for, where it is not the host of their address." name:"log-tls-name" placeholder:"NAME"`

	secure *tls.Config // what validate read of the files; nil: no flag names one
}

// readTLS reads how the nats-servers are known, where a flag says it.
func (f *clusterFlags) readTLS() (err error) {
	files := upstream.TLSFiles{CA: f.LogTLSCA, Cert: f.LogTLSCert, Key: f.LogTLSKey, Name: f.LogTLSName}
	if files == (upstream.TLSFiles{}) {
		return nil
	}
	if err = unpack.CheckRegular(f.LogTLSCA); err == nil { // SIGHUP has it read again, and no signal ends that
		f.secure, err = files.Config()
	}
	if err != nil {
		return fmt.Errorf("--log-tls-ca, --log-tls-cert, --log-tls-key: %w", err)
	}
	if !strings.HasPrefix(f.Log, "tls://") {
		return errors.New("--log-tls-ca, --log-tls-cert and --log-tls-name need --log tls://")
	}
	return nil
}

const maxCredentialsBytes = 64 << 10

// validate checks what the flags' types cannot. from is --source.
func (f *clusterFlags) validate(from string) error {
	switch {
	case f.MaxLag <= 0:
		return errors.New("--max-lag must be above 0")
	case f.LogReplicas < 1 || f.LogReplicas > 5:
		return errors.New("--log-replicas must be between 1 and 5")
	case f.OpsAdvertise != "" && !isHost(f.OpsAdvertise):
		return errors.New("--ops-advertise must be a host, or HOST:PORT")
	}
	if f.Log == "" {
		if f.Role != roleAll {
			return fmt.Errorf("--role %s needs --log", f.Role)
		}
		return nil
	}
	if _, err := cluster.ParseLog(f.Log); err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	if f.LogDomain != "" && f.LogAPIPrefix != "" {
		return errors.New("--log-domain and --log-api-prefix do not go together")
	}
	if err := f.readTLS(); err != nil {
		return err
	}
	if f.LogCredentials != "" { // each connection reads it, and no signal ends that
		if info, err := os.Stat(f.LogCredentials); err != nil || !info.Mode().IsRegular() || info.Size() > maxCredentialsBytes {
			return fmt.Errorf("--log-credentials: %s is not a file of at most 64 KiB", f.LogCredentials)
		}
	}
	switch {
	case f.Role == roleReplica && from != "none":
		return errors.New("--role replica follows the log alone: it needs --source none")
	case f.Role != roleReplica && from == "none":
		return fmt.Errorf("--role %s needs a --source; --role replica follows the log alone", f.Role)
	}
	return nil
}

// connect begins to connect a node to its cluster.
func (f *clusterFlags) connect(ctx context.Context, n *node, set *metrics.Set, filter *filterFlags, skipVotes bool) (err error) {
	c, err := cluster.ParseLog(f.Log)
	if err != nil {
		return &usageError{err}
	}
	c.NodeID, c.Credentials, c.TLS, c.Logger, c.Metrics = n.dir.NodeID(), f.LogCredentials, f.secure, n.logger, set
	c.Replicas, c.MaxBytes, c.Tags, c.Domain, c.APIPrefix = f.LogReplicas, int64(f.LogMaxBytes), f.LogTags, f.LogDomain, f.LogAPIPrefix
	c.MayWrite = f.Role != roleReplica
	c.LedgerID, _ = n.dir.Cluster()
	if n.source != nil {
		facts := datadir.FactsOf(n.source.Info(), filter.filter(), filter.Data.DataPrograms, skipVotes)
		if c.LedgerID == "" && f.Role == roleAll { // else nobody might offer the snapshot that others begin with
			if c.Founds, err = n.dir.HoldsRecords(ctx); err != nil {
				return err
			}
			facts.Complete = facts.Complete || c.Founds && n.dir.ShowsAll()
		}
		n.facts, c.Facts = &facts, facts.Encode()
	}
	if n.cluster, err = cluster.Open(c); err != nil {
		return err
	}
	return f.exchange(n)
}

// join ties the data directory to the ledger of the cluster, and fills one that is empty with the
// newest snapshot that another node offers. Only a directory that was tied before needs no server for that.
func (n *node) join(ctx context.Context, progress func(done, total uint64)) error {
	if err := n.anew.wait(ctx); err != nil {
		return err
	}
	if id, _ := n.dir.Cluster(); id == "" {
		if err := n.bind(ctx); err != nil {
			return err
		}
	}
	_, facts := n.dir.Cluster()
	if n.facts != nil {
		n.facts.Complete = n.facts.Complete || facts.Complete // also where the node that founded the cluster had imported its ledger
		if other := n.facts.Difference(&facts); other != "" {
			return fmt.Errorf("this node and the cluster differ in what they say of the ledger: %s", other)
		}
	}
	held, err := n.dir.HoldsRecords(ctx)
	if err != nil {
		return err
	}
	if held {
		if done, err := n.setAside(ctx); err != nil || !done {
			return err
		}
	}
	return n.begin(ctx, progress)
}

// bind learns which ledger the cluster holds.
func (n *node) bind(ctx context.Context) error {
	id, encoded, err := n.cluster.Facts(ctx)
	if err != nil {
		return err
	}
	facts, err := datadir.DecodeFacts(encoded)
	if err != nil {
		return err
	}
	founded, err := n.cluster.Founded(ctx)
	if err != nil {
		return err
	}
	if founded {
		n.logger.Info("founds a cluster with the ledger that it holds: others begin with its next snapshot", "ledger", id)
		return n.dir.FoundCluster(id, facts)
	}
	return n.dir.BindCluster(id, facts)
}

// watchLead ends the run when another node has taken this one's place: it then begins anew.
func (n *node) watchLead(parts *errgroup.Group, done <-chan struct{}) {
	parts.Go(func() error {
		select {
		case <-n.cluster.Log().Deposed():
			return ledger.ErrDeposed
		case <-done:
			return nil
		}
	})
}

// watchFence closes all sockets when the node fences itself off, so that their clients go on elsewhere.
func (n *node) watchFence(parts *errgroup.Group, done <-chan struct{}) {
	parts.Go(func() error {
		select {
		case <-n.engine.Fenced():
		case <-done:
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := n.hub.Shutdown(ctx); err != nil {
			n.logger.Warn("sockets were cut off", "error", err)
		}
		return nil
	})
}
