package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"ledgerd/engine/cluster"
	"ledgerd/engine/codec"
	"ledgerd/snapshot/vfs"
)

// keptManifests are how many snapshots are offered: a node that fetches one while the next is made finishes.
const keptManifests = 2

// Offer stores a snapshot's files for others, in the order in which they are to appear there: what a file names comes before
// it. The files must not change meanwhile. Parts that are there already are not sent again. Then it removes what only older
// snapshots than the two newest need, and purges the stream below them. It returns ErrNotMaker where another node makes the
// snapshots. After another error this node leaves it to others for a while. It is for one goroutine at a time.
func (x *Exchange) Offer(ctx context.Context, disk vfs.FS, dir string, names []string, what Snapshot) error {
	if err := x.offer(ctx, disk, dir, names, what); err != nil {
		x.offerFailures.Inc()
		if ctx.Err() == nil && !errors.Is(err, ErrNotMaker) { // what failed here may not fail there
			x.cluster.LeaveSnapshots()
		}
		return fmt.Errorf("cannot offer the snapshot of version %d: %w", what.Version, err)
	}
	x.offers.Inc()
	return nil
}

func (x *Exchange) offer(ctx context.Context, disk vfs.FS, dir string, names []string, what Snapshot) error {
	if !x.cluster.MakesSnapshots() {
		return ErrNotMaker
	}
	id, facts, err := x.cluster.Facts(ctx)
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
	m := &Manifest{
		Format: manifestFormat, Ledger: id, Node: x.config.NodeID, Snapshot: what, Record: codec.AppendRecord(nil, record), Facts: facts,
	}
	o, err := x.open(ctx, id, true)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := o.offerFile(ctx, disk, dir, name)
		if err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
		m.Files = append(m.Files, *f)
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot encode the manifest: %w", err)
	}
	if !x.cluster.MakesSnapshots() { // the node that does now may have swept the parts: no manifest named them yet
		return ErrNotMaker
	}
	if err := o.put(ctx, manifestName(what.Version), encoded); err != nil {
		return err
	}
	return o.prune(ctx)
}

// offerFile stores the parts of a file that are not there.
func (o *objects) offerFile(ctx context.Context, disk vfs.FS, dir, name string) (*File, error) {
	file, err := disk.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, Bytes: size, Parts: make([]string, partsOf(size))}
	room := make([]byte, min(partBytes, size))
	for i := range f.Parts {
		if !o.cluster.MakesSnapshots() {
			return nil, ErrNotMaker
		}
		part := room[:f.partSize(i)]
		if _, err := file.ReadAt(part, int64(i)*partBytes); err != nil {
			return nil, err
		}
		f.Parts[i] = hashOf(part)
		if o.whole(f.object(i), len(part)) {
			continue
		}
		if err := o.put(ctx, f.object(i), part); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// prune keeps the newest snapshots that are whole and what they name. The record of the oldest one stays in the stream, and
// all after it.
func (o *objects) prune(ctx context.Context) error {
	if err := o.list(ctx); err != nil {
		return err
	}
	kept, err := o.usable(ctx, keptManifests)
	if err != nil {
		return err
	}
	named := make(map[string]bool)
	for _, m := range kept {
		named[manifestName(m.Version)] = true
		for i := range m.Files {
			for p := range m.Files[i].Parts {
				named[m.Files[i].object(p)] = true
			}
		}
	}
	if !o.cluster.MakesSnapshots() {
		return ErrNotMaker
	}
	if err := o.sweep(ctx, named); err != nil || len(kept) < keptManifests {
		return err
	}
	return o.cluster.PurgeBelow(ctx, kept[len(kept)-1].Version)
}

// sweep removes objects that are not named, manifests first, and messages that are of no object: what was being stored when a
// node died.
func (o *objects) sweep(ctx context.Context, named map[string]bool) error {
	for _, manifests := range []bool{true, false} {
		for name, i := range o.held {
			if _, is := manifestVersion(name); is != manifests || named[name] {
				continue
			}
			if err := o.remove(ctx, i); err != nil {
				return err
			}
		}
	}
	known := make(map[string]bool)
	for _, i := range o.held {
		known[i.NUID] = true
	}
	for id := range o.chunks {
		if known[id] {
			continue
		}
		if err := o.purge(ctx, o.chunkSubject(id)); err != nil {
			return err
		}
	}
	return nil
}
