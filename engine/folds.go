package engine

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
)

const (
	// queryDeadline is how long a query may take after its version is fixed.
	queryDeadline = 2 * time.Second
	// foldAfter is how long a version stays readable after it stopped being the newest
	// finalized one: longer than any query that started before.
	foldAfter = queryDeadline + 250*time.Millisecond
	// maxOverlayCells bounds the cells, of some hundred bytes each, that the overlays of all shards keep only for running
	// queries. Above it finalized versions are folded at once, and a query of an older version starts over at a newer one.
	maxOverlayCells = 4 << 20
)

// folds are the finalized versions that no query may read below any more once they are due.
type folds struct {
	waiting []dueFold
	newest  ledger.Version
}

type dueFold struct {
	tip    ledger.Tip
	pruned []*txstore.Block
	at     time.Time
}

// add notes that tip became the newest finalized one now, with blocks given up meanwhile.
func (f *folds) add(tip ledger.Tip, pruned []*txstore.Block, now time.Time) {
	if tip.Version == f.newest && len(pruned) == 0 {
		return
	}
	f.newest = tip.Version
	f.waiting = append(f.waiting, dueFold{tip, pruned, now.Add(foldAfter)})
}

// due takes out the newest fold that is due and all before it, as one.
func (f *folds) due(now time.Time, atOnce bool) (to ledger.Tip, pruned []*txstore.Block, ok bool) {
	n := 0
	for ; n < len(f.waiting) && (atOnce || !now.Before(f.waiting[n].at)); n++ {
		to, ok = f.waiting[n].tip, true
		pruned = append(pruned, f.waiting[n].pruned...)
	}
	clear(f.waiting[:n]) // the array lives on, the blocks must not
	f.waiting = f.waiting[n:]
	return to, pruned, ok
}

// next returns when the next fold is due, false if none waits.
func (f *folds) next() (time.Time, bool) {
	if len(f.waiting) == 0 {
		return time.Time{}, false
	}
	return f.waiting[0].at, true
}
