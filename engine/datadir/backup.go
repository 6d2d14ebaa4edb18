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
	parts []io.Reader
	files []io.Closer
}

// Close closes the files.
func (b *Backup) Close() (err error) {
	for _, f := range b.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// IsInBackup reports whether a backup may hold a file of a name, in which directories end with a slash.
func IsInBackup(name string) bool {
	switch dir, file := path.Split(name); dir {
	case "":
		return file == nodeFileName
	case "snapshots/":
		return snapshot.IsFile(file)
	case "log/":
		return wal.IsFile(file)
	}
	return false
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
	b := new(Backup)
	defer func() {
		if err != nil {
			_ = b.Close()
		}
	}()
	names, err := d.newestSnapshot()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := d.backupFile(b, path.Join("snapshots", name), filepath.Join(d.SnapshotDir(), name)); err != nil {
			return nil, err
		}
	}
	parts, err := l.Parts()
	for _, p := range parts {
		err = errors.Join(err, b.add(path.Join("log", p.Name), p, p, p.Bytes))
	}
	if err != nil {
		return nil, err
	}
	switch now, err := d.newestSnapshot(); {
	case err != nil:
		return nil, err
	case !slices.Equal(now, names):
		return nil, errPruned
	}
	if err := d.backupFile(b, nodeFileName, d.file()); err != nil {
		return nil, err
	}
	b.append(bytes.NewReader(make([]byte, 2*tarBlockBytes))) // the end of an archive
	b.Reader = io.MultiReader(b.parts...)
	return b, nil
}

// backupFile appends a file of the disk.
func (d *Dir) backupFile(b *Backup, name, file string) error {
	f, err := d.fs.Open(file)
	if err != nil {
		return err
	}
	size, err := f.Size()
	return errors.Join(err, b.add(name, f, f, size))
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

const (
	tarBlockBytes  = 512
	backupFileMode = 0o640
)

// add appends a file, which Close will close. None of them changes before size any more; one that is shorter all the same cuts
// the stream short. The content is read later, so a tar.Writer writes the header alone.
func (b *Backup) add(name string, content io.ReaderAt, f io.Closer, size int64) error {
	b.files = append(b.files, f)
	var header bytes.Buffer
	err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Mode: backupFileMode, Size: size, Format: tar.FormatPAX})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.append(bytes.NewReader(header.Bytes()))
	b.append(io.NewSectionReader(content, 0, size))
	b.append(bytes.NewReader(make([]byte, -size&(tarBlockBytes-1)))) // up to the next block
	return nil
}

// append appends a part of the stream.
func (b *Backup) append(part interface {
	io.Reader
	Size() int64
}) {
	b.parts, b.Bytes = append(b.parts, part), b.Bytes+part.Size()
}
