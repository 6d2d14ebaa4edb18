package wal

import (
	"context"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// readerBytes is how much a Reader reads at once. What it read after the commit at which visit ended a Read is read again.
const readerBytes = 256 << 10

// maxAttempts is how many attempts in a row may fail without reading a further commit before a Reader returns the error. A writer
// begins, cuts or prunes a segment far more rarely.
const maxAttempts = 5

// Reader reads a log that another process may be writing, and changes nothing. The writer may append, begin, cut and prune
// segments meanwhile, so that parts read at different moments do not fit together: a Reader returns an error only after
// several attempts failed. One goroutine uses a Reader. It holds no file open between two calls.
type Reader struct {
	disk  vfs.FS
	dir   string
	at    cursor
	known []segment // whose headers were read
}

// NewReader returns a reader of the log in dir that begins with the commit that holds record from, or with the oldest commit if
// from is 0.
func NewReader(disk vfs.FS, dir string, from ledger.Version) *Reader {
	return &Reader{disk: disk, dir: dir, at: cursorAt(from)}
}

// Read calls visit for every whole commit, in order, that no earlier Read visited, and returns where
// the log ends. It visits each commit once, even if visit ends a Read with an error, which Read returns. Errors and entries are
// as in Open. Of the segments before the one where it begins, Read reads only the headers.
func (r *Reader) Read(ctx context.Context, visit func([]Entry) error) (End, error) {
	for attempt := 1; ; attempt++ {
		var stop error
		end, err := r.read(func(commit []Entry) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			last := &commit[len(commit)-1]
			r.at = cursor{last.Segment, last.frame.after(last.tip)}
			stop, attempt = visit(commit), 1 // attempts are counted anew after each commit
			return stop
		})
		if err == nil || stop != nil || ctx.Err() != nil || attempt == maxAttempts {
			return end, err
		}
		r.at, r.known = cursorAt(r.at.next()), nil // what was read of the segment may have changed
	}
}

// read is one attempt of Read.
func (r *Reader) read(visit func([]Entry) error) (End, error) {
	s, err := newScanner(r.disk, r.dir, r.at, r.known, readerBytes)
	if err != nil {
		return End{}, err
	}
	r.known = s.survey.segments
	s.out = visit
	err = s.scan()
	return s.end, err
}

// cursor is a point between two commits of a log, where reading goes on without reading again what
// comes before it in the segment.
type cursor struct {
	segment uint64 // index; 0: only the version of state is known
	state   state
}

// cursorAt returns the cursor before the commit that holds the record from. Reading from there begins with the
// first record of the segment.
func cursorAt(from ledger.Version) cursor { return cursor{state: state{version: from - 1}} }

// next returns the version of the record after the cursor.
func (c *cursor) next() ledger.Version { return c.state.version + 1 }
