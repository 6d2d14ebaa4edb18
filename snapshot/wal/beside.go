package wal

import (
	"context"
	"errors"
	"io/fs"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Mark is a point between two commits of a log, where a replay goes on without reading again what
// comes before it in the segment.
type Mark struct {
	segment uint64 // index; 0: only the version of state is known
	state   state
}

// MarkAt returns the mark before the commit that holds the record from. A replay from there reads the
// segment from its beginning.
func MarkAt(from ledger.Version) Mark { return Mark{state: state{version: from - 1}} }

// errorPlace is where an error was found. The text of an error may change while a log is written, its place does not.
type errorPlace struct {
	file   string // or, of an error without a place, the text of what caused it
	offset int64
}

func placeOf(err error) errorPlace {
	var corrupt *CorruptError
	var path *fs.PathError
	switch {
	case errors.As(err, &corrupt):
		return errorPlace{corrupt.Segment, corrupt.Offset}
	case errors.As(err, &path):
		return errorPlace{file: path.Path}
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		err = cause
	}
	return errorPlace{file: err.Error()}
}

// ReplayBeside is Replay of a log that is being written. The writer may append, begin, cut and prune
// segments meanwhile, so that parts read at different moments do not fit together. An error counts only if
// a second attempt finds one in the same place. Each commit is visited once.
func ReplayBeside(ctx context.Context, disk vfs.FS, dir string, from ledger.Version, visit func([]Entry) error) (End, error) {
	return ReplayFrom(ctx, disk, dir, new(MarkAt(from)), visit)
}

// ReplayFrom is ReplayBeside from a mark on. It moves the mark after each commit that was visited, also
// if visit then ends the replay.
func ReplayFrom(ctx context.Context, disk vfs.FS, dir string, mark *Mark, visit func([]Entry) error) (End, error) {
	var before errorPlace
	for {
		var stop error
		end, err := replay(ctx, disk, dir, *mark, func(commit []Entry) error {
			last := &commit[len(commit)-1]
			*mark = Mark{last.Segment, last.frame.after(last.tip)}
			stop = visit(commit)
			return stop
		}, nil)
		if err == nil || stop != nil || ctx.Err() != nil || before == placeOf(err) {
			return end, err
		}
		before = placeOf(err)
		*mark = MarkAt(mark.state.version + 1) // the segment before it may have changed
	}
}
