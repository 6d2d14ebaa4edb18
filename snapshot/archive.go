package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sort"
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

// OpenArchive opens the archive in a directory, which it makes if need be. It removes what a crash left unfinished, so no other
// process may be writing there. ledgers returns the names of the ledger, none while the ledger has no block: then no run is of it.
func OpenArchive(disk vfs.FS, dir string, limit int64, ledgers func() []string, log *slog.Logger) (*Archive, error) {
	a := &Archive{fs: disk, dir: dir, limit: limit, log: cmp.Or(log, slog.Default()), ledgers: ledgers}
	a.one.log, a.lists.log = a.log, a.log
	a.readers.New = func() any { return &runReader{chunkReader: newChunkReader()} }
	if err := disk.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("cannot make the directory of history: %w", err)
	}
	names, err := disk.List(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the directory of history: %w", err)
	}
	var runs []*run
	for _, name := range names {
		first, last, ok := parseBlocksName(runPrefix, name)
		switch {
		case isTemporary(name):
			a.remove(name)
			continue
		case !ok:
			continue
		}
		r, err := openRun(disk, dir, name)
		if vfs.IsShortage(err) {
			return nil, fmt.Errorf("cannot open the history: %w", err)
		}
		if err != nil {
			bytes, _ := vfs.Size(disk, filepath.Join(dir, name))
			r = &run{file: &file{name: name, bytes: bytes}, runMeta: runMeta{First: first, Last: last}}
			a.lose(r, err)
		}
		if own := ledgers(); len(own) == 0 || r.Ledger != "" && !slices.Contains(own, r.Ledger) {
			a.log.Warn("a file of history is not used: it is of another ledger than this data directory; move it away", "file", name)
			continue
		}
		runs = append(runs, r)
	}
	// By where they begin; of those that begin at a slot the longest comes first.
	slices.SortFunc(runs, func(r, s *run) int { return cmp.Or(cmp.Compare(r.First, s.First), cmp.Compare(s.Last, r.Last)) })
	var held []*run
	var unused []unusedFile
	var needless []string
	for _, r := range runs {
		switch n := len(held); {
		case n == 0 || r.First > held[n-1].Last:
			held = append(held, r)
		case r.Last <= held[n-1].Last && !held[n-1].lost.Load():
			needless = append(needless, r.name) // a merge was cut short
		default:
			unused = append(unused, unusedFile{r.name, r.First, r.bytes})
			a.log.Warn("a file of history is not used: another one, be it damaged, is of the same slots", "file", r.name)
		}
	}
	if len(needless) > 0 {
		// First the name of what has their blocks, which the process before may not have synced: no power cut may take both.
		if err := disk.SyncDir(dir); err != nil {
			return nil, fmt.Errorf("cannot sync the directory of history: %w", err)
		}
	}
	for _, name := range needless {
		a.remove(name)
	}
	a.runs.Store(&held)
	a.unused.Store(&unused)
	for _, r := range held {
		if r.lost.Load() {
			continue
		}
		switch err := r.hold(); {
		case vfs.IsShortage(err):
			a.Close()
			return nil, fmt.Errorf("cannot open the history: %w", err)
		case err != nil:
			a.lose(r, err)
		}
	}
	a.keepWithin()
	return a, nil
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

// remove removes a file that nothing needs. What it cannot remove it leaves for the next start.
func (a *Archive) remove(name string) {
	if err := a.fs.Remove(filepath.Join(a.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("cannot remove a file of history", "file", name, "error", err)
	}
}

// lose notes that a run cannot be read or is damaged, and logs that once.
func (a *Archive) lose(r *run, err error) {
	if !r.lost.Swap(true) {
		a.log.Error("a file of history cannot be read, or is damaged: its blocks are not indexed; the file is kept, and a restart looks again", "error", err,
			"from_slot", uint64(r.First), "to_slot", uint64(r.Last))
	}
}

// PassOver forgets the runs above a hole in which memory holds a block; a file that was copied from another node may leave such a
// hole. Add takes no block below a run, and memory holds, or will hold, the blocks of the runs that are forgotten. holds reports whether
// memory holds a block from one slot to below another.
//
// PassOver also forgets the damaged runs that end above newest, the newest finalized slot of the ledger. Of a damaged run only the
// name says its slots, and this ledger wrote no run that ends above newest; Add would take no block up to the slots that these
// names claim. The files stay.
func (a *Archive) PassOver(newest ledger.Slot, holds func(from, below ledger.Slot) bool) {
	runs, unused := *a.runs.Load(), *a.unused.Load()
	n := len(runs)
	for n > 0 && runs[n-1].lost.Load() && runs[n-1].Last > newest {
		n--
	}
	for i := 1; i < n; i++ { // below the first of all may be what was dropped
		if holds(runs[i-1].Last+1, runs[i].First) {
			n = i
		}
	}
	if n == len(runs) {
		return
	}
	for _, r := range runs[n:] {
		a.log.Warn("a file of history is not used: the ledger has not come to all of its slots, or holds blocks before it that are not written; move it away", "file", r.name)
	}
	unused = unused[:sort.Search(len(unused), func(i int) bool { return unused[i].first >= runs[n].First })]
	runs = runs[:n:n]
	a.unused.Store(&unused)
	a.use(runs)
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

// Add writes blocks, oldest first, which are above all blocks of the archive. Once they would survive a crash, it merges runs, as
// far as a merge needs at most room bytes of disk, and drops the runs that exceed the bound. An error loses no block that was held.
func (a *Archive) Add(ctx context.Context, blocks []HeldBlock, room int64, pace Pace) error {
	m := runOf(blocks)
	if own := a.ledgers(); len(own) > 0 {
		m.Ledger = own[0]
	}
	made, err := a.write(ctx, pace, m, func(e *encoder) error { return e.runBlocks(blocks) })
	if err != nil {
		return fmt.Errorf("cannot write history up to slot %d: %w", blocks[len(blocks)-1].Block.Slot, err)
	}
	a.use(append(slices.Clone(*a.runs.Load()), made))
	defer a.keepWithin() // the bound holds also where runs cannot be joined
	for at := a.alike(room); at >= 0; at = a.alike(room) {
		if err := a.merge(ctx, pace, at); err != nil && !errors.Is(err, ErrLost) { // a lost run is not alike any more
			return fmt.Errorf("cannot join files of history: %w", err)
		}
	}
	return nil
}

// keepWithin drops what exceeds the bound, but never the newest run.
func (a *Archive) keepWithin() {
	for s := a.Stats(); s.Bytes > a.limit; s = a.Stats() {
		at := a.needless()
		if at < 0 && s.Runs <= 1 {
			return
		}
		a.drop(at)
	}
}

// Shrink drops the file that is to be removed next and returns its bytes, 0 if there is none.
func (a *Archive) Shrink() int64 {
	if len(*a.runs.Load()) == 0 {
		return 0
	}
	return a.drop(a.needless())
}

// needless returns the index of the oldest unused file that is of no damaged run, -1 where there is none.
func (a *Archive) needless() int {
	runs := *a.runs.Load()
	return slices.IndexFunc(*a.unused.Load(), func(f unusedFile) bool {
		at := sort.Search(len(runs), func(i int) bool { return runs[i].Last >= f.first })
		return !runs[at].lost.Load()
	})
}

// drop drops the unused file with an index, or for -1 the oldest run with the unused files of its slots, and returns their bytes.
func (a *Archive) drop(at int) (bytes int64) {
	runs, unused := *a.runs.Load(), slices.Clone(*a.unused.Load())
	var dropped []unusedFile
	if at >= 0 {
		dropped = []unusedFile{unused[at]}
		unused = slices.Delete(unused, at, at+1)
	} else {
		oldest, newer := runs[0], runs[1:]
		n := sort.Search(len(unused), func(i int) bool { return unused[i].first > oldest.Last })
		dropped = append(unused[:n:n], unusedFile{oldest.name, oldest.First, oldest.bytes})
		unused = unused[n:]
		a.use(newer)
	}
	a.unused.Store(&unused)
	for _, f := range dropped {
		a.remove(f.name)
		a.log.Debug("removed a file of history", "file", f.name)
		bytes += f.bytes
	}
	return bytes
}

// alike returns the index of the first of the newest runs that are to be merged, -1 for none. They follow each other, and none of
// them is larger than all the others together, so the number of times a block is written grows with the logarithm of the history.
func (a *Archive) alike(room int64) int {
	runs := *a.runs.Load()
	for at := len(runs) - mergedRuns; at >= 0; at-- {
		var sum, largest int64
		whole := true
		for i, r := range runs[at : at+mergedRuns] {
			whole = whole && !r.lost.Load() && (i == 0 || r.follows(runs[at+i-1]))
			sum, largest = sum+r.bytes, max(largest, r.bytes)
		}
		if whole && largest <= sum-largest && sum <= min(room, a.limit/largestShare) {
			return at
		}
	}
	return -1
}

// runOf returns the meta of the run of blocks.
func runOf(blocks []HeldBlock) *runMeta {
	m := &runMeta{First: blocks[0].Block.Slot, Last: blocks[len(blocks)-1].Block.Slot, Blocks: uint64(len(blocks))}
	if blocks[0].Previous.Known {
		m.Previous = &blocks[0].Previous.Value
	}
	for i := range blocks {
		if b := &blocks[i]; b.Previous.Known && b.Block.ParentSlot > b.Previous.Value {
			m.Gap = &b.Block.Slot
		}
	}
	return m
}

// write writes a run that fill fills, reads it back, and installs it.
func (a *Archive) write(ctx context.Context, pace Pace, m *runMeta, fill func(*encoder) error) (*run, error) {
	w, err := createFile(a.fs, a.dir, blocksName(runPrefix, m.First, m.Last, FileHash{}), runMagic)
	if err != nil {
		return nil, err
	}
	defer w.discard()
	_, err = w.fill(ctx, pace, func(e *encoder) error {
		e.full = runChunkBytes
		if err := fill(e); err != nil {
			return err
		}
		return e.meta(json.Marshal(m))
	})
	if err != nil {
		return nil, err
	}
	written, err := openRun(a.fs, a.dir, w.temporary)
	if err != nil {
		return nil, err
	}
	w.name = blocksName(runPrefix, m.First, m.Last, w.hash)
	if err := w.install(); err != nil {
		return nil, err
	}
	written.name = w.name
	if err := written.hold(); err != nil {
		a.remove(w.name)
		return nil, err
	}
	return written, nil
}

// merge makes one run of those that follow each other from an index on.
func (a *Archive) merge(ctx context.Context, pace Pace, at int) error {
	all := *a.runs.Load()
	runs := all[at : at+mergedRuns]
	m := &runMeta{First: runs[0].First, Last: runs[len(runs)-1].Last, Previous: runs[0].Previous}
	for _, r := range runs {
		m.Blocks, m.Gap, m.Ledger = m.Blocks+r.Blocks, cmp.Or(r.Gap, m.Gap), r.Ledger
	}
	made, err := a.write(ctx, pace, m, func(e *encoder) error { return e.joined(a, runs) })
	if err != nil {
		return err
	}
	a.use(slices.Concat(all[:at], []*run{made}, all[at+mergedRuns:]))
	for _, r := range runs {
		a.remove(r.name)
	}
	return nil
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
