package main

import (
	"context"
	"errors"
	"time"

	"ledgerd/engine/cluster"
	"ledgerd/engine/cluster/exchange"
	"ledgerd/engine/ledger"
)

const (
	// lookPatience bounds how long a start asks whether the log goes on from what the node holds: where no server answers
	// it answers what it holds.
	lookPatience = 2 * time.Second
	// newerPatience bounds how long it looks for a newer snapshot, once it was told that the log does not.
	newerPatience = 20 * time.Second
)

// setAside sets aside what the data directory holds where the cluster's log was purged past it and a newer snapshot
// is offered, and reports whether it did. Whatever else is the matter with the log, following it tells.
func (n *node) setAside(ctx context.Context) (done bool, err error) {
	last, newer := n.behind(ctx)
	if newer == nil {
		return false, ctx.Err()
	}
	n.logger.Warn("the cluster's log was purged past what this node holds: it is set aside, and the node begins with a snapshot",
		"holds_version", uint64(last), "snapshot_version", uint64(newer.Version), "kept_in", n.dataDir, "snapshot_slot", uint64(newer.Slot))
	return true, n.dir.SetAside()
}

// behind returns the newest version that the data directory holds and a snapshot to begin with instead, nil where the log goes
// on from there or that cannot be told in a short time.
func (n *node) behind(ctx context.Context) (last ledger.Version, newer *exchange.Manifest) {
	least, err := n.dir.LeastVersion()
	if err != nil || !n.purgedPast(ctx, least) {
		return 0, nil
	}
	// Only now is the log worth reading.
	if last, err = n.dir.LastVersion(ctx); err != nil || !n.purgedPast(ctx, last) {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, newerPatience)
	defer cancel()
	offered, err := n.exchange.Offered(ctx)
	if err == nil {
		newer = offered[0]
		_, err = n.cluster.RecordAt(ctx, newer.Version) // it can be followed from there
	}
	if err != nil || newer.Version <= last {
		n.logger.Error("the cluster's log was purged past what this node holds, and no newer snapshot is offered that leads to it",
			"holds_version", uint64(last), "error", err)
		return 0, nil
	}
	return last, newer
}

// purgedPast reports whether the log is known not to go on from a version any more.
func (n *node) purgedPast(ctx context.Context, v ledger.Version) bool {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	return errors.Is(n.cluster.GoesOn(ctx, v), cluster.ErrPurged)
}
