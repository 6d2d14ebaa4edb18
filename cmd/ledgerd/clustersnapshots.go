package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"ledgerd/engine/cluster/exchange"
	"ledgerd/engine/datadir"
	"ledgerd/httpd/ops"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
)

// isHost reports whether a flag names a host, or a host and a port, and nothing more.
func isHost(s string) bool {
	u, err := url.Parse("http://" + s)
	if err == nil {
		_, err = net.LookupPort("tcp", u.Port()) // 65536 is none
	}
	return err == nil && u.Hostname() != "" && u.Host == s
}

// exchange sets up how a node gives snapshots to others and fetches theirs. A node shows to others the certificate of its own listeners.
func (f *clusterFlags) exchange(n *node) error {
	var secure *tls.Config
	if n.opsTLS != nil {
		var err error
		if secure, err = n.peerTLS.Config(); err != nil {
			return &usageError{fmt.Errorf("--tls-client-ca, --tls-cert, --tls-key: %w", err)}
		}
	}
	n.exchange = exchange.New(n.cluster, f.advertised(n), secure)
	if f.Role != roleIngest && !n.exchange.Offers() {
		n.logger.Warn("other nodes cannot fetch snapshots from this one, and for it the log is not purged: " +
			"give --ops-listen an address that they reach, or name that with --ops-advertise")
	}
	return nil
}

// advertised returns the URL of the operators' listener for other nodes, "" where they do not reach it, or are not to ask.
func (f *clusterFlags) advertised(n *node) string {
	if f.Role == roleIngest || n.opsListener == nil {
		return ""
	}
	at, ok := n.opsListener.Addr().(*net.TCPAddr)
	host := f.OpsAdvertise
	switch {
	case ok && host == "" && !at.IP.IsLoopback() && !at.IP.IsUnspecified():
		host = at.String()
	case host == "":
		return ""
	}
	u := url.URL{Scheme: "http", Host: host}
	if n.opsTLS != nil {
		u.Scheme = "https"
	}
	if u.Port() == "" && ok {
		u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(at.Port))
	}
	return u.String()
}

// snapshotFile opens a file of a snapshot for another node.
func (n *node) snapshotFile(name string) (ops.File, error) {
	return exchange.Open(vfs.Disk{}, datadir.SnapshotDir(n.dataDir), name)
}

// offer gives a snapshot to those who begin.
func (n *node) offer(ctx context.Context, s snapshot.Written) {
	var names []string // the blocks, and then the state, which refers to them
	for _, f := range s.Meta.History {
		names = append(names, f.Name)
	}
	err := n.exchange.Offer(ctx, vfs.Disk{}, datadir.SnapshotDir(n.dataDir), append(names, s.Name), exchange.Snapshot{
		Version: s.Version, Slot: s.Slot, StateHash: s.Meta.StateHash,
	})
	switch {
	case err == nil:
		n.logger.Info("offers a snapshot to other nodes", "slot", uint64(s.Slot))
	case ctx.Err() == nil:
		n.logger.Error("a snapshot is not offered to other nodes, the log is kept", "error", err)
	}
}

// begin fills an empty directory with the newest snapshot that is offered and can be fetched. Where there is none the log is followed
// from its first record. Where that was purged it waits until a node offers one, and gives it.
func (n *node) begin(ctx context.Context, progress func(done, total uint64)) error {
	return n.untilOffered(ctx, "this node cannot begin before another one gives it a snapshot: tries again and again", func() error {
		err := n.beginWithAny(ctx, progress)
		if lacksSnapshot(err) && !n.purgedPast(ctx, 0) {
			return n.dir.AbandonBootstrap(ctx)
		}
		return err
	})
}

// beginWithAny tries all snapshots that are offered.
func (n *node) beginWithAny(ctx context.Context, progress func(done, total uint64)) error {
	offered, err := n.exchange.Offered(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i, m := range offered {
		err := n.beginWith(ctx, m, progress)
		if err == nil || ctx.Err() != nil {
			return err
		}
		failed = append(failed, err)
		if i < len(offered)-1 {
			n.logger.Warn("cannot begin with the newest snapshot, tries an older one", "slot", uint64(m.Slot), "node", m.Node, "error", err)
		}
	}
	return errors.Join(failed...)
}

// beginWith fills an empty directory with a snapshot, which it then gives to others, too.
func (n *node) beginWith(ctx context.Context, m *exchange.Manifest, progress func(done, total uint64)) error {
	n.logger.Info("begins with a snapshot of another node", "slot", uint64(m.Slot), "node", m.Node, "bytes", m.Bytes())
	err := n.exchange.Fetch(ctx, m, vfs.Disk{}, datadir.SnapshotDir(n.dataDir), func(done, total int64) { progress(uint64(done), uint64(total)) })
	if err == nil {
		err = datadir.Adopt(ctx, n.dir, m.Record, n.logger)
	}
	if err != nil || !n.exchange.Offers() {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if err := n.exchange.Share(bounded, m); err != nil {
		n.logger.Warn("other nodes do not learn yet that this one has the snapshot, too", "error", err)
	}
	return nil
}
