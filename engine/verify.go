package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

// matchLog returns the kind of a snapshot's record in the log, after comparing the record's state hash with that of the snapshot's
// meta. If the log is damaged there, the snapshot may be right: the replay, which begins at the record, reports the damage.
func (r *recovery) matchLog(ctx context.Context, m *snapshot.Meta, file string) (kind ledger.RecordKind, err error) {
	logged := m.StateHash
	_, err = wal.NewReader(r.node.config.Dir.FS(), r.node.config.Dir.LogDir(), m.Version).Read(ctx, func(commit []wal.Entry) error {
		for i := range commit {
			if record := commit[i].Record; record.Version == m.Version {
				logged, kind = record.StateHash, record.Kind
			}
		}
		return io.EOF // ends the reading
	})
	switch {
	case logged != m.StateHash:
		return kind, &snapshot.DamagedError{File: file, Reason: fmt.Sprintf("it is of the state hash %s, its record in the log of %s", m.StateHash, logged)}
	case err == io.EOF, errors.Is(err, wal.ErrCorrupt), errors.Is(err, wal.ErrMissing):
		return kind, nil
	}
	return kind, err
}

// verify sums up the state hash of the snapshot that was loaded, while the node answers from it already: the sum takes
// a third of the time of a start. The checksums of what was loaded are right, so only a state that was wrong when it was written
// can have another sum; then the node fences itself off.
func (r *recovery) verify(ctx context.Context) {
	if r.loaded == nil {
		return
	}
	err := r.loaded.VerifyState(ctx, ingest.Pace(r.found.Log))
	switch {
	case err == nil:
		r.node.config.Logger.Info("the state hash of the loaded snapshot is right", "slot", uint64(r.found.Snapshot.Slot))
	case errors.Is(err, snapshot.ErrState):
		r.node.writer.Fence("the snapshot that it loaded holds another state than the log says", err)
	case ctx.Err() == nil:
		r.node.config.Logger.Warn("the state hash of the loaded snapshot cannot be verified", "error", err)
	}
}
