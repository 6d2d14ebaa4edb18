package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// # Setting content aside
//
// A cluster node that was away so long that the shared log no longer has its next record cannot continue. It
// begins with a snapshot of another node, and its content is set aside, not removed: the folders of log and snapshots are
// renamed and replace what was set aside before. First, MovingAside in node.json is made durable. A crash before that
// leaves the directory unchanged; after it, the next Open completes the renames.

// asideSuffix is added to the names of the folders that are set aside.
const asideSuffix = ".behind"

// SetAside empties the directory of a cluster node and keeps its content in the folders log.behind and snapshots.behind. The
// log and the snapshots must not be open. After an error or a crash the directory is unchanged, or the next Open completes
// the work.
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

// moveAside renames the folders that are not yet renamed, and clears MovingAside.
func (d *Dir) moveAside() error {
	for _, dir := range []string{d.LogDir(), d.SnapshotDir()} {
		if _, err := d.fs.List(dir); errors.Is(err, fs.ErrNotExist) { // it is renamed, or there was none
			continue
		}
		// The target is from an earlier SetAside, since dir is not renamed yet.
		err := vfs.Clear(d.fs, dir+asideSuffix)
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

// LeastVersion returns the version of the newest snapshot, so the directory holds the ledger at least up to there; 0 if
// there is none. It does not read the log.
func (d *Dir) LeastVersion() (ledger.Version, error) {
	all, err := snapshot.ViewStore(d.fs, d.SnapshotDir(), nil).List()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil || len(all) == 0:
		return 0, err
	}
	return all[0].Version, nil
}

// LastVersion returns the version of the newest record in the directory's log, 0 if there is none.
func (d *Dir) LastVersion(ctx context.Context) (ledger.Version, error) {
	from, err := d.LeastVersion()
	if err != nil {
		return 0, err
	}
	end, err := wal.NewReader(d.fs, d.LogDir(), from).Read(ctx, func([]wal.Entry) error { return nil })
	if err != nil {
		return 0, fmt.Errorf("cannot read the log: %w", err)
	}
	return end.Version(), nil
}
