package engine

import (
	"context"
	"errors"
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

// TakenSnapshot is a snapshot that was written, with all that another node needs to begin with it.
type TakenSnapshot struct {
	Version   ledger.Version // the record it is the state after
	Slot      ledger.Slot
	Blockhash ledger.Hash
	Seq       ledger.Seq
	StateHash ledger.StateHash

	Record []byte // that record, as codec.AppendRecord encodes it

	Dir   string // where the files lie
	Files []SnapshotFile
}

// SnapshotFile is a file of a snapshot. It never changes.
type SnapshotFile struct {
	Name  string
	Bytes int64
}

// offerSnapshot passes a snapshot that was checked to Config.OnSnapshot.
func (e *Engine) offerSnapshot(ctx context.Context, w snapshot.Written) error {
	if e.config.OnSnapshot == nil || e.stopped() {
		return nil
	}
	m := w.Meta
	record, err := e.recordAt(ctx, m.Version)
	if err != nil {
		return err
	}
	taken := TakenSnapshot{
		Version: m.Version, Slot: m.Slot, Blockhash: m.Blockhash, Seq: m.Seq, StateHash: m.StateHash,
		Record: codec.AppendRecord(nil, record), Dir: e.config.Dir.SnapshotDir(),
	}
	for _, f := range m.History {
		taken.Files = append(taken.Files, SnapshotFile{f.Name, f.Bytes})
	}
	taken.Files = append(taken.Files, SnapshotFile{w.Name, w.Bytes})
	e.config.OnSnapshot(ctx, taken)
	return nil
}

// recordAt reads a record back from the log.
func (e *Engine) recordAt(ctx context.Context, v ledger.Version) (found *ledger.Record, err error) {
	_, err = wal.ReplayBeside(ctx, e.config.Dir.FS(), e.config.Dir.LogDir(), v, func(commit []wal.Entry) error {
		for i := range commit {
			if commit[i].Record.Version == v {
				found = commit[i].Record
			}
		}
		return errEnoughRead
	})
	if err != nil && !errors.Is(err, errEnoughRead) {
		return nil, fmt.Errorf("cannot read record %d back from the log: %w", v, err)
	}
	if found == nil {
		return nil, fmt.Errorf("cannot read record %d back from the log: %w", v, wal.ErrMissing)
	}
	return found, nil
}
