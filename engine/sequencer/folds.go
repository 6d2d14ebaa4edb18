package sequencer

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
)

// maxOverlayCells bounds the cells, of some hundred bytes each, that the overlays of all shards keep only for running
// queries. Above it finalized versions are folded at once, and a query of an older version starts over at a newer one.
const maxOverlayCells = 4 << 20

// folds are the finalized versions that no query may read below any more once they are due.
type folds struct {
	after   time.Duration // how long a version stays readable once a newer one is finalized
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
	f.waiting = append(f.waiting, dueFold{tip, pruned, now.Add(f.after)})
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
