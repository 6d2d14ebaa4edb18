package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ledgerd/engine/cluster"
	"ledgerd/engine/codec"
	"ledgerd/snapshot/vfs"
)

// Fetch brings the files of a snapshot into a directory, one after the other: a file has its name when it is whole and synced.
// What an earlier fetch left there, whole or not, is kept as far as it is right. Before, the record that the snapshot is
// the state after is compared with the stream's. Parts come from the node that offers the snapshot, or from those that offer
// another one with the same part. ErrNoPeer: none gave it. cluster.ErrPurged: the log does not go on from the snapshot any more. progress, where it is not nil, is told how many of all bytes are there.
func (x *Exchange) Fetch(ctx context.Context, m *Manifest, offered []*Manifest, disk vfs.FS, dir string, progress func(done, total int64)) error {
	if err := x.fetch(ctx, m, offered, disk, dir, progress); err != nil {
		x.fetchFailures.Inc()
		return fmt.Errorf("cannot fetch the snapshot of version %d: %w", m.Version, err)
	}
	x.fetches.Inc()
	return nil
}

func (x *Exchange) fetch(ctx context.Context, m *Manifest, offered []*Manifest, disk vfs.FS, dir string, progress func(done, total int64)) error {
	record, err := x.cluster.RecordAt(ctx, m.Version)
	if err != nil {
		return err
	}
	if record.StateHash != m.StateHash || !bytes.Equal(codec.AppendRecord(nil, record), m.Record) {
		return fmt.Errorf("%w: the record of version %d is another in the stream", cluster.ErrOtherLedger, m.Version)
	}
	if err := disk.MkdirAll(dir); err != nil {
		return fmt.Errorf("cannot make the directory: %w", err)
	}
	f := fetcher{
		Exchange: x, offered: append([]*Manifest{m}, offered...), avoid: make(map[string]bool), disk: disk, dir: dir, total: m.Bytes(), progress: progress,
	}
	for i := range m.Files {
		if err := f.file(ctx, &m.Files[i]); err != nil {
			return fmt.Errorf("file %s: %w", m.Files[i].Name, err)
		}
	}
	return x.cluster.GoesOn(ctx, m.Version) // else it took so long that a newer one is needed
}

// fetcher is one fetch.
type fetcher struct {
	*Exchange
	offered     []*Manifest     // that may name the same parts, the one that is fetched first
	avoid       map[string]bool // addresses of peers that did not give what they should
	disk        vfs.FS
	dir         string
	done, total int64
	progress    func(done, total int64)
}

// file brings one file in.
func (t *fetcher) file(ctx context.Context, f *File) error {
	name := filepath.Join(t.dir, f.Name)
	part := name + vfs.TemporarySuffix // until it is whole. What is right of it is kept when a fetch begins anew
	if err := t.disk.Rename(name, part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := t.disk.OpenWrite(part)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = t.disk.Create(part)
	}
	if err != nil {
		return err
	}
	if err := t.fill(ctx, f, file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	_, err = vfs.Install(t.disk, part, name)
	return err
}

// missing returns the parts that a file does not hold, in order; any where ctx ends.
func (f *File) missing(ctx context.Context, file vfs.File) (parts []int) {
	room := make([]byte, min(partBytes, f.Bytes))
	for i := range f.Parts {
		b := room[:f.partSize(i)]
		if ctx.Err() != nil {
			return parts
		}
		if _, err := file.ReadAt(b, int64(i)*partBytes); err != nil || hashOf(b) != f.Parts[i] {
			parts = append(parts, i)
		}
	}
	return parts
}

// fill brings in the parts that a file lacks.
func (t *fetcher) fill(ctx context.Context, f *File, file vfs.File) error {
	missing, held := f.missing(ctx, file), f.Bytes
	for _, i := range missing {
		held -= int64(f.partSize(i))
	}
	t.tell(held)
	room := make([]byte, min(partBytes, f.Bytes))
	for _, i := range missing {
		part := room[:f.partSize(i)]
		if err := t.part(ctx, f, i, part); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		if _, err := file.WriteAt(part, int64(i)*partBytes); err != nil {
			return err
		}
		t.tell(int64(len(part)))
	}
	return errors.Join(ctx.Err(), file.Truncate(f.Bytes))
}

// part fills the room with a part that any peer gives.
func (t *fetcher) part(ctx context.Context, f *File, i int, room []byte) error {
	failed := ErrNoPeer
	for _, m := range t.offered {
		if t.avoid[m.Address] {
			continue
		}
		if same := m.file(f.Name); same == nil || same.Bytes != f.Bytes || same.Parts[i] != f.Parts[i] {
			continue
		}
		err := t.get(ctx, m.Address, f, i, room)
		if err == nil || ctx.Err() != nil {
			return err
		}
		t.avoid[m.Address] = true
		failed = fmt.Errorf("%w: node %s: %w", failed, m.Node, err)
		t.config.Logger.Warn("a node does not give a part of a snapshot, others are asked", "node", m.Node, "file", f.Name, "part", i, "error", err)
	}
	return failed
}

func (t *fetcher) tell(n int64) {
	t.done += n
	if t.progress != nil {
		t.progress(t.done, t.total)
	}
}
