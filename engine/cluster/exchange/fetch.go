package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"ledgerd/engine/cluster"
	"ledgerd/engine/codec"
	"ledgerd/snapshot/vfs"
)

// fetchSuffix is of a file that is not whole yet. What is right of it is kept when a fetch begins anew.
const fetchSuffix = ".fetch"

// Offered returns the manifests of all snapshots that are offered, newest first, without those that cannot be read or of which
// a part is missing. ErrNoSnapshot: there is none.
func (x *Exchange) Offered(ctx context.Context) ([]*Manifest, error) {
	id, _, err := x.cluster.Facts(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot look for snapshots: %w", err)
	}
	o, err := x.open(ctx, id, false)
	if err != nil {
		return nil, err
	}
	all, err := o.usable(ctx, math.MaxInt)
	if err == nil && len(all) == 0 {
		err = ErrNoSnapshot
	}
	return all, err
}

// Fetch brings the files of a snapshot into a directory, one after the other: a file has its name when it is whole and synced.
// What an earlier fetch left there, whole or not, is kept as far as it is right. Before, the record that the snapshot is
// the state after is compared with the stream's. progress, where it is not nil, is told how many of all bytes are there.
func (x *Exchange) Fetch(ctx context.Context, m *Manifest, disk vfs.FS, dir string, progress func(done, total int64)) error {
	if err := x.fetch(ctx, m, disk, dir, progress); err != nil {
		x.fetchFailures.Inc()
		return fmt.Errorf("cannot fetch the snapshot of version %d: %w", m.Version, err)
	}
	x.fetches.Inc()
	return nil
}

func (x *Exchange) fetch(ctx context.Context, m *Manifest, disk vfs.FS, dir string, progress func(done, total int64)) error {
	record, err := x.cluster.RecordAt(ctx, m.Version)
	if err != nil {
		return err
	}
	if record.StateHash != m.StateHash || !bytes.Equal(codec.AppendRecord(nil, record), m.Record) {
		return fmt.Errorf("%w: the record of version %d is another in the stream", cluster.ErrOtherLedger, m.Version)
	}
	o, err := x.open(ctx, m.Ledger, false)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(dir); err != nil {
		return fmt.Errorf("cannot make the directory: %w", err)
	}
	f := fetcher{objects: o, disk: disk, dir: dir, total: m.Bytes(), progress: progress}
	for i := range m.Files {
		if err := f.file(ctx, &m.Files[i]); err != nil {
			return fmt.Errorf("file %s: %w", m.Files[i].Name, err)
		}
	}
	return nil
}

// fetcher is one fetch.
type fetcher struct {
	*objects
	disk        vfs.FS
	dir         string
	done, total int64
	progress    func(done, total int64)
}

// file brings one file in.
func (t *fetcher) file(ctx context.Context, f *File) error {
	name := filepath.Join(t.dir, f.Name)
	whole, err := t.disk.Open(name)
	if err == nil {
		size, err := whole.Size()
		missing := f.missing(ctx, whole)
		if err := errors.Join(err, whole.Close(), ctx.Err()); err != nil {
			return err
		}
		if size == f.Bytes && len(missing) == 0 {
			t.tell(f.Bytes)
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	part := name + fetchSuffix
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
	for _, i := range missing {
		b, err := t.get(ctx, f.object(i), f.partSize(i))
		if err == nil && (len(b) != f.partSize(i) || hashOf(b) != f.Parts[i]) {
			err = fmt.Errorf("%w: its bytes are not what the manifest says", errBadPart)
		}
		if errors.Is(err, errBadPart) {
			t.partsBad.Inc()
		}
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		if _, err := file.WriteAt(b, int64(i)*partBytes); err != nil {
			return err
		}
		t.tell(int64(len(b)))
	}
	return errors.Join(ctx.Err(), file.Truncate(f.Bytes))
}

func (t *fetcher) tell(n int64) {
	t.done += n
	if t.progress != nil {
		t.progress(t.done, t.total)
	}
}
