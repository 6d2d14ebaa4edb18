package snapshot

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Archive is a directory with finalized blocks that memory need not hold any more, in files that are called runs:
// run-<first slot>-<last slot>-<hash>.blocks. They stay answerable by slot, by signature and by the keys that they name.
//
// A run never changes. It is written under a temporary name, synced and read back before it is used. Eight runs of similar size
// are merged into one, so that there are some tens of runs however long the history is. When the runs take more bytes than the
// bound, or the disk runs short, the oldest run is removed first.
//
// A run names the ledger that it is of. A run of another ledger is not used, and not removed.
//
// If a run is damaged, or the disk cannot read it, only its own blocks are lost: [Archive.Stats] reports it, it is logged, and it
// stays until it is the oldest. The same holds for a merged run that is found damaged while some of its parts still exist: they
// are used once it is moved away. Damage is no error of [OpenArchive]; a shortage is, since the next start may find it gone.
//
// Of several files of the same slots one is the run; a copy of another node's history brings such files. The bound counts them
// all. The unused ones are removed before any run, except those of a damaged run, which are removed with it.
//
// The files of runs stay open until the runs are dropped or merged, or the archive is closed: a question may read tens of them.
//
// One goroutine calls Add, PassOver, Shrink and Close; any goroutine may call the other methods. The archive answers one question of a
// kind at a time, on a thread of low priority; the others wait until their deadline, and clients take turns. A question for one
// block or transaction does not wait for a list.
type Archive struct {
	fs    vfs.FS
	dir   string
	limit int64 // bytes of all runs and unused files
	log   *slog.Logger

	ledgers func() []string // the names of the ledger, see OpenArchive

	runs   atomic.Pointer[[]*run]       // by slot; no two overlap
	unused atomic.Pointer[[]unusedFile] // by slot

	one, lists lane // of questions for one block or transaction, and of questions that walk over many blocks

	readers sync.Pool // of *runReader: making one takes more memory, and as much time, as all else that a question does with a run
}

const (
	mergedRuns   = 8   // so many runs become one
	mostWaiting  = 256 // so many questions of a kind wait: a client that is refused retries at once, which costs more than waiting
	largestShare = 8   // a run is at most one part in so many of the bound, since runs are dropped whole
)

// unusedFile is a file that begins at a slot of a run, and is not used.
type unusedFile struct {
	name  string
	first ledger.Slot
	bytes int64
}

// ArchiveStats are the figures of an archive.
type ArchiveStats struct {
	Bytes       int64 // of the runs, and of unused files of their slots
	MemoryBytes int64 // of the indexes of the files
	Runs        int
	Damaged     []string // names of the runs that are damaged
}

// use makes runs those that are used, and releases those that are not used any more.
func (a *Archive) use(runs []*run) {
	for _, r := range *a.runs.Swap(&runs) {
		if !slices.Contains(runs, r) {
			r.release()
		}
	}
}

// Close closes the files. Questions find nothing afterwards.
func (a *Archive) Close() {
	if a != nil {
		a.use(nil)
	}
}

// Next returns the slot after the newest block held, 0 where none is.
func (a *Archive) Next() ledger.Slot { return nextOf(*a.runs.Load()) }

func nextOf(runs []*run) ledger.Slot {
	if len(runs) == 0 {
		return 0
	}
	return runs[len(runs)-1].Last + 1
}

// First returns the slot of the oldest block held, the greatest slot where none is.
func (a *Archive) First() ledger.Slot {
	runs := *a.runs.Load()
	if len(runs) == 0 {
		return math.MaxUint64
	}
	return runs[0].First
}

// From returns the lowest slot from which on the archive has all blocks below another slot; it returns that other slot if it has
// none of them.
func (a *Archive) From(below ledger.Slot) ledger.Slot {
	if a == nil {
		return below
	}
	runs := *a.runs.Load()
	if nextOf(runs) < below {
		return below
	}
	from := below
	for n, r := range slices.Backward(runs) {
		if r.First < below { // else memory has it all
			if r.lost.Load() {
				break
			}
			if r.Gap != nil {
				return min(from, *r.Gap)
			}
			from = r.First
		}
		if n > 0 && runs[n-1].Last < below && !r.follows(runs[n-1]) { // a hole, of which memory may have a part
			break
		}
	}
	return from
}

// Stats returns the figures.
func (a *Archive) Stats() (s ArchiveStats) {
	if a == nil {
		return s
	}
	for _, r := range *a.runs.Load() {
		s.Runs++
		s.Bytes += r.bytes
		s.MemoryBytes += int64(cap(r.chunks)) * int64(unsafe.Sizeof(chunk{}))
		if r.lost.Load() {
			s.Damaged = append(s.Damaged, r.name)
		}
	}
	for _, f := range *a.unused.Load() {
		s.Bytes += f.bytes
	}
	return s
}

// read enqueues a question in a lane, which calls do. It calls do again if a run was merged or dropped meanwhile.
func (a *Archive) read(l *lane, by Asker, do func(runs []*run) error) error {
	return l.ask(by, func() error {
		for {
			if err := do(*a.runs.Load()); !errors.Is(err, fs.ErrClosed) {
				return err
			}
		}
	})
}
