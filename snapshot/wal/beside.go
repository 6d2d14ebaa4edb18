package wal

import (
	"context"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// ReplayBeside is Replay of a log that its writer goes on with: it may write, begin, cut and prune
// segments meanwhile, so that what is read at different moments does not fit together. Only what
// a second look finds in the same place is an error. Each commit is visited once.
func ReplayBeside(ctx context.Context, disk vfs.FS, dir string, from ledger.Version, visit func([]Entry) error) (End, error) {
	next, before := from, ""
	for {
		var stop error
		end, err := Replay(ctx, disk, dir, next, func(commit []Entry) error {
			if stop = visit(commit); stop != nil {
				return stop
			}
			next = commit[len(commit)-1].Record.Version + 1
			return nil
		}, nil)
		if err == nil || stop != nil || ctx.Err() != nil || err.Error() == before {
			return end, err
		}
		before = err.Error()
	}
}
