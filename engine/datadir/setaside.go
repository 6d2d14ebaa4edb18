package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ledgerd/engine/extsort"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

// # Beginning anew
//
// A node of a cluster that was away until the shared log does not go back to what it holds cannot go on from there. It
// begins with a snapshot of another node, and what it held is set aside, not removed: the folders of log and snapshots get
// other names, in place of what an earlier time left there. A note in node.json says that this goes on. Before it is durable
// the directory is what it was; after it, the next Open completes what a crash interrupted.

// asideSuffix is added to the names of the folders that are set aside.
const asideSuffix = ".behind"

// SetAside empties a directory of a cluster and keeps what it held in the folders log.behind and snapshots.behind. Nothing
// of the directory may be open. After an error, or a crash, the directory holds what it held, or the next Open completes it.
func (d *Dir) SetAside() error {
	err := d.update(func(n *nodeFile) error {
		if n.MovingAside = true; n.LedgerID == "" {
			return fmt.Errorf("data directory %s belongs to no cluster: what it holds is not to be set aside", d.path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.moveAside()
}

// moveAside renames the folders that have their names still, and removes the note.
func (d *Dir) moveAside() error {
	for _, dir := range []string{d.LogDir(), d.SnapshotDir()} {
		if _, err := d.fs.List(dir); errors.Is(err, fs.ErrNotExist) { // it is renamed, or there was none
			continue
		}
		// What is aside was set aside an earlier time: dir would not be here any more.
		err := extsort.Clear(d.fs, dir+asideSuffix)
		if err == nil {
			err = d.fs.Remove(dir + asideSuffix)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = d.fs.Rename(dir, dir+asideSuffix)
		}
		if err != nil {
			return fmt.Errorf("cannot set aside %s: %w", dir, err)
		}
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return fmt.Errorf("cannot sync the data directory: %w", err)
	}
	return d.update(func(n *nodeFile) error { n.MovingAside = false; return nil })
}

// LeastVersion returns a version up to which the directory holds the ledger at least, without reading the log; 0 where
// only that tells.
func (d *Dir) LeastVersion() (ledger.Version, error) {
	if _, err := d.fs.List(d.SnapshotDir()); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	all, err := snapshot.ViewStore(d.fs, d.SnapshotDir(), nil).List()
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
