package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

// What package exchange needs of the log and of the connection.

// PurgeBelow purges the stream up to the commit that holds a version.
func (c *Cluster) PurgeBelow(ctx context.Context, v ledger.Version) error {
	stream, info, begin, err := c.bindAt(ctx, ledger.LogPoint{Version: v})
	if errors.Is(err, ErrPurged) {
		return nil
	}
	if err != nil || begin <= info.State.FirstSeq {
		return err
	}
	err = c.Retry(ctx, "purging the stream", func(ctx context.Context) error {
		return stream.Purge(ctx, jetstream.WithPurgeSequence(begin))
	})
	if err == nil {
		c.logger.Info("purged the stream", "below_version", uint64(v), "first", begin)
	}
	return err
}

// RecordAt returns the record of a version from the stream. ErrPurged: the stream does not hold it any more. ErrShortened: it
// does not hold it yet.
func (c *Cluster) RecordAt(ctx context.Context, v ledger.Version) (*ledger.Record, error) {
	stream, info, begin, err := c.bindAt(ctx, ledger.LogPoint{Version: v})
	if err != nil {
		return nil, err
	}
	h, err := c.headAt(ctx, stream, begin)
	if err != nil {
		return nil, err
	}
	if h.first == 0 || h.first > v {
		return nil, fmt.Errorf("%w, version %d", ErrPurged, v)
	}
	d, err := newDecoder(begin-1, ledger.LogPoint{Version: h.first - 1, StateHash: h.state}, c.stats.countDamage)
	if err != nil {
		return nil, err
	}
	defer d.close()
	for at := begin; at <= info.State.LastSeq; at++ {
		data, err := c.dataAt(ctx, stream, at)
		if err != nil {
			return nil, err
		}
		commit, err := d.take(at, data)
		if err != nil {
			return nil, err
		}
		for _, r := range commit {
			if r.Version == v {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: it has no record of version %d", ErrShortened, v)
}

// Founded reports whether this node made the stream, to begin it after the ledger that it holds, and no node has written to it.
func (c *Cluster) Founded(ctx context.Context) (bool, error) {
	_, info, err := c.bind(ctx)
	if err != nil {
		return false, err
	}
	return info.State.LastSeq == 0 && info.Config.Metadata[founderKey] == c.config.NodeID, nil
}

// Config returns what Open was given, with the defaults in place.
func (c *Cluster) Config() Config { return c.config }

// JetStream returns the connection to the servers.
func (c *Cluster) JetStream() jetstream.JetStream { return c.js }

// Bucket returns a bucket beside the stream, which it makes if need be. Each key keeps its newest value. bytes bounds it where the
// account of the nats-servers asks for bounds.
func (c *Cluster) Bucket(ctx context.Context, name, description string, bytes int64) (jetstream.KeyValue, error) {
	name = c.config.Stream + "_" + name
	kv, err := c.js.KeyValue(ctx, name)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return kv, err
	}
	return c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: name, Description: description, History: 1,
		Storage: jetstream.FileStorage, Replicas: c.config.Replicas, MaxBytes: min(c.config.MaxBytes, bytes), Placement: c.config.Placement(),
	})
}

// LeaderInfo returns what a stream is, as a server tells that leads it and hears from most of the others. Messages that are then
// read through it come from the leader, too.
func LeaderInfo(ctx context.Context, stream jetstream.Stream, options ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	info, err := stream.Info(ctx, options...)
	if err != nil {
		return nil, err
	}
	readFromLeader(stream)
	return info, checkQuorumLeader(info)
}
