package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sort"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

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
	runs, err := a.runsOf(names)
	if err != nil {
		return nil, fmt.Errorf("cannot open the history: %w", err)
	}
	needless := a.choose(runs)
	if len(needless) > 0 {
		// First the name of what has their blocks, which the process before may not have synced: no power cut may take both.
		if err := disk.SyncDir(dir); err != nil {
			return nil, fmt.Errorf("cannot sync the directory of history: %w", err)
		}
	}
	for _, name := range needless {
		a.remove(name)
	}
	for _, r := range *a.runs.Load() {
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

// runsOf returns the runs of the ledger among the files with some names. It removes unfinished files.
func (a *Archive) runsOf(names []string) (runs []*run, err error) {
	for _, name := range names {
		first, last, ok := parseBlocksName(runPrefix, name)
		switch {
		case isTemporary(name):
			a.remove(name)
			continue
		case !ok:
			continue
		}
		r, err := openRun(a.fs, a.dir, name)
		if vfs.IsShortage(err) {
			return nil, err
		}
		if err != nil {
			bytes, _ := vfs.Size(a.fs, filepath.Join(a.dir, name))
			r = &run{file: &file{name: name, bytes: bytes}, runMeta: runMeta{First: first, Last: last}}
			a.lose(r, err)
		}
		if own := a.ledgers(); len(own) == 0 || r.Ledger != "" && !slices.Contains(own, r.Ledger) {
			a.log.Warn("a file of history is not used: it is of another ledger than this data directory; move it away", "file", name)
			continue
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// choose sets which of some runs are used and which are not, and returns the names of those that are needless, because a merge was cut
// short after it had made their successor.
func (a *Archive) choose(runs []*run) (needless []string) {
	// By where they begin; of those that begin at a slot the longest comes first.
	slices.SortFunc(runs, func(r, s *run) int { return cmp.Or(cmp.Compare(r.First, s.First), cmp.Compare(s.Last, r.Last)) })
	var held []*run
	var unused []unusedFile
	for _, r := range runs {
		switch n := len(held); {
		case n == 0 || r.First > held[n-1].Last:
			held = append(held, r)
		case r.Last <= held[n-1].Last && !held[n-1].lost.Load():
			needless = append(needless, r.name)
		default:
			unused = append(unused, unusedFile{r.name, r.First, r.bytes})
			a.log.Warn("a file of history is not used: another one, be it damaged, is of the same slots", "file", r.name)
		}
	}
	a.runs.Store(&held)
	a.unused.Store(&unused)
	return needless
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
