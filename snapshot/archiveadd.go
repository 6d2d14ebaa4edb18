package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
)

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
