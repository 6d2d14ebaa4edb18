package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// # Bootstrap from a snapshot of another node
//
// A node of a cluster does not have to follow the shared log from its first record: it can begin with a snapshot
// of another node. The caller puts the files into the directory of snapshots; each gets its name after it is
// whole and synced. Then [Adopt] writes the record that the snapshot is the state after as the first record of the
// node's log. Until that record is durable the directory holds no ledger: a start
// refuses it, and a node that was killed repeats or continues the bootstrap.

// ErrUnfinishedBootstrap refuses a directory whose node was killed before Adopt returned.
var ErrUnfinishedBootstrap = errors.New("holds a snapshot of another node and no record: it has to begin once more")

// Adopt makes a snapshot in SnapshotDir the beginning of a cluster node's directory. encoded is the record that the
// snapshot is the state after, as codec.AppendRecord encodes it. After an error or a crash
// Adopt may be called again, also with another snapshot. After success it does nothing.
func Adopt(ctx context.Context, d *Dir, encoded []byte, log *slog.Logger) error {
	record, err := codec.DecodeRecord(encoded)
	if err != nil {
		return fmt.Errorf("cannot begin with a snapshot: its record: %w", err)
	}
	if err := d.adopt(ctx, record, log); err != nil {
		return fmt.Errorf("cannot begin with the snapshot of record %d: %w", record.Version, err)
	}
	return nil
}

func (d *Dir) adopt(ctx context.Context, record *ledger.Record, log *slog.Logger) error {
	if id, _ := d.Cluster(); id == "" {
		return fmt.Errorf("data directory %s belongs to no cluster", d.path)
	}
	switch first, err := d.FirstRecord(ctx); {
	case err != nil:
		return err
	case first != nil && first.Version == record.Version && first.StateHash == record.StateHash:
		return nil
	case first != nil:
		return fmt.Errorf("data directory %s holds records already", d.path)
	}
	m, err := d.onlySnapshot(record, log)
	if err != nil {
		return err
	}
	// The snapshot is durable, so the record may become durable.
	if err := wal.Remove(d.fs, d.LogDir()); err != nil {
		return err
	}
	l, err := wal.Create(wal.Config{FS: d.fs, Dir: d.LogDir(), Logger: log}, m.Version, m.Slot)
	if err != nil {
		return fmt.Errorf("cannot begin the log: %w", err)
	}
	if err := errors.Join(l.Commit([]*ledger.Record{record}), l.Close()); err != nil {
		return fmt.Errorf("cannot begin the log: %w", err)
	}
	return nil
}

// onlySnapshot returns the snapshot of a record and removes all others: a start could choose another one,
// and the log has no records for it.
func (d *Dir) onlySnapshot(record *ledger.Record, log *slog.Logger) (*snapshot.Meta, error) {
	store, err := snapshot.OpenStore(d.fs, d.SnapshotDir(), log)
	if err != nil {
		return nil, err
	}
	all, err := store.List()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(i snapshot.Info) bool { return i.Version == record.Version })
	if at < 0 {
		return nil, errors.New("it is not there")
	}
	snap, err := store.Open(all[at])
	if err != nil {
		return nil, err
	}
	m := snap.Meta()
	switch {
	case m.StateHash != record.StateHash:
		return nil, fmt.Errorf("its state hash is %s, that of the record %s", m.StateHash, record.StateHash)
	case m.Seq != record.LastSeq():
		return nil, fmt.Errorf("it stands at update %d, the record at %d", m.Seq, record.LastSeq())
	}
	for _, other := range slices.Delete(all, at, at+1) {
		if err := d.fs.Remove(filepath.Join(d.SnapshotDir(), other.Name)); err != nil {
			return nil, fmt.Errorf("cannot remove another snapshot: %w", err)
		}
	}
	if err := d.fs.SyncDir(d.SnapshotDir()); err != nil {
		return nil, fmt.Errorf("cannot sync the directory of snapshots: %w", err)
	}
	return m, nil
}

// FirstRecord returns the oldest record of the directory's log, nil if there is none.
func (d *Dir) FirstRecord(ctx context.Context) (first *ledger.Record, err error) {
	_, err = wal.NewReader(d.fs, d.LogDir(), 0).Read(ctx, func(commit []wal.Entry) error {
		first = commit[0].Record
		return io.EOF // ends the reading
	})
	if err != nil && first == nil {
		return nil, fmt.Errorf("cannot read the log: %w", err)
	}
	return first, nil
}

// HoldsRecords reports whether the directory's log has a record. Without one, a cluster node's directory
// needs a bootstrap.
func (d *Dir) HoldsRecords(ctx context.Context) (bool, error) {
	first, err := d.FirstRecord(ctx)
	return first != nil, err
}

// AbandonBootstrap removes the files of a snapshot that was not adopted, so that the node can follow the shared
// log from its beginning.
func (d *Dir) AbandonBootstrap(ctx context.Context) error {
	id, _ := d.Cluster()
	if held, err := d.HoldsRecords(ctx); err != nil {
		return err
	} else if held || id == "" {
		return fmt.Errorf("data directory %s holds a ledger, which is not to be removed", d.path)
	}
	if err := wal.Remove(d.fs, d.LogDir()); err != nil {
		return err
	}
	return vfs.Clear(d.fs, d.SnapshotDir())
}
