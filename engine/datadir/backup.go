package datadir

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

// # Backup
//
// A backup is a data directory as the node could have left it by a crash at one moment: the newest snapshot that is whole, all of
// the log up to its newest commit, and then node.json, which was durable before anything that depends on it. It is a tar
// stream of known length. node.json comes last, so nothing that was cut off is a data directory.

// Backup is a tar stream. It holds its files open, so they may be pruned meanwhile.
type Backup struct {
	io.Reader
	Bytes int64 // of the stream
	files []io.Closer
}

// Close closes the files.
func (b *Backup) Close() (err error) {
	for _, f := range b.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// backupTries is how often a backup begins again because what it was about to open was pruned.
const backupTries = 10

// errPruned says that snapshots came while a backup opened its files, so the log may begin after the one it opened.
var errPruned = fmt.Errorf("a newer snapshot was taken: %w", fs.ErrNotExist)

// Backup returns a backup of the directory whose log l is. The caller closes it.
func (d *Dir) Backup(l *wal.Log) (b *Backup, err error) {
	for range backupTries {
		if b, err = d.backup(l); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot back up %s: %w", d.path, err)
	}
	return b, nil
}

func (d *Dir) backup(l *wal.Log) (_ *Backup, err error) {
	w := &backupWriter{}
	defer func() {
		if err != nil {
			_ = w.Close()
		}
	}()
	names, err := d.newestSnapshot()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := d.fs.Open(filepath.Join(d.SnapshotDir(), name))
		if err != nil {
			return nil, err
		}
		w.files = append(w.files, f)
		size, err := f.Size()
		if err == nil {
			err = w.add(path.Join("snapshots", name), f, size)
		}
		if err != nil {
			return nil, err
		}
	}
	parts, err := l.Parts()
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		w.files = append(w.files, p)
	}
	switch now, err := d.newestSnapshot(); {
	case err != nil:
		return nil, err
	case !slices.Equal(now, names):
		return nil, errPruned
	}
	for _, p := range parts {
		if err := w.add(path.Join("log", p.Name), p, p.Bytes); err != nil {
			return nil, err
		}
	}
	node, err := d.fs.Open(d.file())
	if err != nil {
		return nil, err
	}
	w.files = append(w.files, node)
	size, err := node.Size()
	if err == nil {
		err = w.add("node.json", node, size)
	}
	if err != nil {
		return nil, err
	}
	return w.finish(), nil
}

// newestSnapshot returns the files of the newest snapshot that is whole as far as its indexes tell, none if there is none.
func (d *Dir) newestSnapshot() (names []string, err error) {
	store := snapshot.ViewStore(d.fs, d.SnapshotDir(), nil)
	all, err := store.List()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		s, err := store.Open(i)
		if errors.Is(err, snapshot.ErrDamaged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, h := range s.Meta().History {
			names = append(names, h.Name)
		}
		return append(names, i.Name), nil
	}
	return nil, nil
}

// backupWriter puts a tar stream together from headers and files, without reading the files.
type backupWriter struct {
	Backup
	parts []io.Reader
}

const (
	tarBlockBytes  = 512
	backupFileMode = 0o640
)

// add appends a file. None of them changes before size any more; one that is shorter all the same cuts the stream short.
func (w *backupWriter) add(name string, content io.ReaderAt, size int64) error {
	var header bytes.Buffer
	err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Mode: backupFileMode, Size: size, Format: tar.FormatPAX})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	padded := (size + tarBlockBytes - 1) / tarBlockBytes * tarBlockBytes
	w.Bytes += int64(header.Len()) + padded
	w.parts = append(w.parts, &header, io.NewSectionReader(content, 0, size), io.LimitReader(zeros{}, padded-size))
	return nil
}

// finish appends the end of the archive.
func (w *backupWriter) finish() *Backup {
	const end = 2 * tarBlockBytes
	w.Bytes += end
	w.Reader = io.MultiReader(append(w.parts, io.LimitReader(zeros{}, end))...)
	return &w.Backup
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
