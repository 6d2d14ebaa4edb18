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
// the state after is compared with the stream's. ErrNoPeer: the node that offers the snapshot does not give it; where another one does, a fetch of that goes
// on with what this one has brought. cluster.ErrPurged: the log does not go on from the snapshot any more. progress is told how many of all bytes are
// there. Fetch is for one goroutine at a time.
func (x *Exchange) Fetch(ctx context.Context, m *Manifest, disk vfs.FS, dir string, progress func(done, total int64)) error {
	err := x.fetch(ctx, m, disk, dir, progress)
	if !errors.Is(err, ErrNoPeer) {
		clear(x.right) // be it that the disk failed
	}
	if err != nil {
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
	if err := disk.MkdirAll(dir); err != nil {
		return fmt.Errorf("cannot make the directory: %w", err)
	}
	f := fetcher{Exchange: x, from: m.Address, disk: disk, dir: dir, total: m.Bytes(), progress: progress}
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
	from        string // the address of the peer
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
		delete(t.right, name)
	}
	if err != nil {
		return err
	}
	if err := t.fill(ctx, f, name, file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	_, err = vfs.Install(t.disk, part, name)
	return err
}

// missing returns the parts that a file does not hold, in order; any where ctx ends. What was right when the fetch before ended with
// ErrNoPeer is not read again: who waits for a part that nobody gives tries each second.
func (t *fetcher) missing(ctx context.Context, f *File, name string, file vfs.File) (parts []int) {
	known, right := t.right[name], make([]string, len(f.Parts))
	room := make([]byte, min(partBytes, f.Bytes))
	for i, want := range f.Parts {
		b := room[:f.partSize(i)]
		if ctx.Err() != nil {
			return parts
		}
		if i < len(known) && known[i] == want {
			right[i] = want
		} else if _, err := file.ReadAt(b, int64(i)*partBytes); err == nil && hashOf(b) == want {
			right[i] = want
		} else {
			parts = append(parts, i)
		}
	}
	t.right[name] = right
	return parts
}

// fill brings in the parts that a file lacks.
func (t *fetcher) fill(ctx context.Context, f *File, name string, file vfs.File) error {
	missing, held := t.missing(ctx, f, name, file), f.Bytes
	for _, i := range missing {
		held -= int64(f.partSize(i))
	}
	t.tell(held)
	room := make([]byte, min(partBytes, f.Bytes))
	for _, i := range missing {
		part := room[:f.partSize(i)]
		if err := t.get(ctx, t.from, f, i, part); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return fmt.Errorf("part %d: %w: %w", i, ErrNoPeer, err)
		}
		if _, err := file.WriteAt(part, int64(i)*partBytes); err != nil {
			return err
		}
		t.tell(int64(len(part)))
	}
	return errors.Join(ctx.Err(), file.Truncate(f.Bytes))
}

func (t *fetcher) tell(n int64) {
	t.done += n
	t.progress(t.done, t.total)
}
