package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ledgerd/engine/gather"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// # Beginning anew
//
// A node of a cluster that was away until the shared log does not go back to what it holds cannot go on from there. It
// begins with a snapshot of another node, and what it held is set aside, not removed: into folders beside the log and the
// snapshots, in place of what an earlier time left there. A note in node.json says that this goes on. Before it is durable
// the directory is what it was; after it, the next one who opens the directory goes on where a crash ended it.

// asideSuffix is of the folders that hold what was set aside.
const asideSuffix = ".behind"

// SetAside empties a directory of a cluster and keeps what it held in the folders log.behind and snapshots.behind. Nothing
// of the directory may be open. After an error, or a crash, the directory holds what it held, or the next Open ends it.
func (d *Dir) SetAside() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node.Cluster == nil {
		return fmt.Errorf("data directory %s belongs to no cluster: what it holds is not to be set aside", d.path)
	}
	if !d.node.SettingAside {
		if err := d.clearAsideLocked(); err != nil {
			return err
		}
		n := d.node
		n.SettingAside = true
		if err := d.replaceLocked(n); err != nil {
			return err
		}
	}
	return d.finishSettingAsideLocked()
}

// setAsideDirs are the folders whose content is set aside.
func (d *Dir) setAsideDirs() []string { return []string{d.LogDir(), d.SnapshotDir()} }

// clearAsideLocked removes what an earlier time set aside. That must not come back once other files are moved there.
func (d *Dir) clearAsideLocked() error {
	for _, dir := range d.setAsideDirs() {
		aside := dir + asideSuffix
		if err := d.fs.MkdirAll(aside); err != nil {
			return fmt.Errorf("cannot make %s: %w", aside, err)
		}
		if err := gather.Clear(d.fs, aside); err != nil {
			return err
		}
		if err := d.fs.SyncDir(aside); err != nil {
			return fmt.Errorf("cannot sync %s: %w", aside, err)
		}
	}
	return nil
}

// finishSettingAsideLocked moves what is not moved yet, and removes the note.
func (d *Dir) finishSettingAsideLocked() error {
	for _, dir := range d.setAsideDirs() {
		if err := moveAll(d.fs, dir, dir+asideSuffix); err != nil {
			return fmt.Errorf("cannot set aside what %s holds: %w", dir, err)
		}
	}
	n := d.node
	n.SettingAside = false
	return d.replaceLocked(n)
}

// moveAll moves all files of a directory into another one.
func moveAll(disk vfs.FS, from, to string) error {
	names, err := disk.List(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == lostAndFound {
			continue
		}
		if err := disk.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return errors.Join(disk.SyncDir(to), disk.SyncDir(from))
}

// LeastVersion returns a version up to which the directory holds the ledger at least, without reading the log; 0 where
// only that tells.
func (d *Dir) LeastVersion() (ledger.Version, error) {
	dir := d.SnapshotDir()
	if _, err := d.fs.List(dir); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	all, err := snapshot.ViewStore(d.fs, dir, nil).List()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[0].Version, nil
}

// LastVersion returns the version of the newest record in the directory's log, 0 where it holds none.
func (d *Dir) LastVersion(ctx context.Context) (ledger.Version, error) {
	from, err := d.LeastVersion()
	if err != nil {
		return 0, err
	}
	end, err := wal.Replay(ctx, d.fs, d.LogDir(), from, func([]wal.Entry) error { return nil }, nil)
	if err != nil {
		return 0, fmt.Errorf("cannot read the log: %w", err)
	}
	return end.Version(), nil
}
