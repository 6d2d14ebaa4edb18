package exchange

import (
	"context"
	"fmt"
	"path/filepath"

	"ledgerd/engine/cluster"
	"ledgerd/engine/codec"
	"ledgerd/snapshot/vfs"
)

// keptManifests are how many snapshots a node offers, which are those that its disk has: a node that fetches one while the next is made finishes.
const keptManifests = 2

// Offer makes a snapshot known to others, its files in the order in which they are to appear there: what a file names comes before
// it. They must not change. Then it purges the stream below the older of the snapshots that this node offers. It is for one
// goroutine at a time.
func (x *Exchange) Offer(ctx context.Context, disk vfs.FS, dir string, names []string, what Snapshot) error {
	err := x.offer(ctx, disk, dir, names, what)
	x.offering.Store(err == nil)
	if err != nil {
		x.offerFailures.Inc()
		return fmt.Errorf("cannot offer the snapshot of version %d: %w", what.Version, err)
	}
	x.offers.Inc()
	return nil
}

func (x *Exchange) offer(ctx context.Context, disk vfs.FS, dir string, names []string, what Snapshot) error {
	id, _, err := x.cluster.Facts(ctx)
	if err != nil {
		return err
	}
	record, err := x.cluster.RecordAt(ctx, what.Version)
	if err != nil {
		return err
	}
	if record.StateHash != what.StateHash {
		return fmt.Errorf("%w: its state hash is %s, that of the record in the stream %s", cluster.ErrOtherLedger, what.StateHash, record.StateHash)
	}
	kv, all, err := x.list(ctx)
	if err != nil {
		return err
	}
	m := &Manifest{
		Format: manifestFormat, Ledger: id, Node: x.config.NodeID, Address: x.address, Snapshot: what, Record: codec.AppendRecord(nil, record),
	}
	held := []*Manifest{m}
	for _, older := range all[x.config.NodeID].manifests {
		if len(held) < keptManifests && older.Ledger == id && older.Version < m.Version && older.isIn(disk, dir) {
			older.Address = x.address // of today
			held = append(held, older)
		}
	}
	for _, name := range names {
		f, err := describe(ctx, disk, dir, name, held[1:])
		if err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
		m.Files = append(m.Files, *f)
	}
	if err := x.check(ctx, m); err != nil {
		return err
	}
	if err := x.put(ctx, kv, held); err != nil || len(held) < keptManifests {
		return err
	}
	oldest := held[len(held)-1].Version
	if err := x.cluster.PurgeBelow(ctx, oldest); err != nil {
		return err
	}
	x.forget(ctx, kv, all, id, oldest)
	return nil
}

// Share offers a snapshot that this node fetched from another until it has one of its own: who begins next finds two nodes that hold it.
func (x *Exchange) Share(ctx context.Context, m *Manifest) error {
	own := *m
	own.Node, own.Address = x.config.NodeID, x.address
	kv, _, err := x.list(ctx)
	if err == nil {
		err = x.put(ctx, kv, []*Manifest{&own})
	}
	return err
}

// check asks this node for a part of what it is about to offer, as others will.
func (x *Exchange) check(ctx context.Context, m *Manifest) error {
	if err := m.check(); err != nil {
		return err
	}
	f := &m.Files[len(m.Files)-1]
	last := len(f.Parts) - 1
	if err := x.get(ctx, x.address, f, last, make([]byte, f.partSize(last))); err != nil {
		return fmt.Errorf("other nodes could not fetch it from %s: %w", x.address, err)
	}
	return nil
}

// describe returns what a file is. One that an older snapshot has, too, is not read again: it never changes.
func describe(ctx context.Context, disk vfs.FS, dir, name string, older []*Manifest) (*File, error) {
	file, err := disk.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	for _, m := range older {
		if f := m.file(name); f != nil && f.Bytes == size {
			return f, nil
		}
	}
	f := &File{Name: name, Bytes: size, Parts: make([]string, partsOf(size))}
	room := make([]byte, min(partBytes, size))
	for i := range f.Parts {
		part := room[:f.partSize(i)]
		if _, err := file.ReadAt(part, int64(i)*partBytes); err != nil {
			return nil, err
		}
		f.Parts[i] = hashOf(part)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return f, nil
}
