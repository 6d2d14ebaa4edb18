package engine

import (
	"context"
	"errors"

	"ledgerd/engine/ingest"
	"ledgerd/snapshot"
)

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
