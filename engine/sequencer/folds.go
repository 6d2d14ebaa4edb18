package sequencer

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
)

// maxOverlayBytes bounds the overlays of all shards, which keep finalized values only for running queries. With a memory limit
// the bound is at most one part in overlayShare of the limit. Above the bound finalized versions are folded at once, and a query
// of an older version starts over at a newer one.
const maxOverlayBytes, overlayShare = 1 << 30, 8

// fold is a finalized tip that the shards fold to once it is due: no query reads below its version any more.
type fold struct {
	to      ledger.Version   // that of the tip
	horizon ledger.Slot      // of its record: every later record has that or a higher one
	pruned  []*txstore.Block // blocks that no head holds any more once the fold is due
	due     time.Time
}

// Shown notes that a batch became visible: what it finalized is folded once no query reads below it.
func (s *Sequencer) Shown(b *Batch) {
	s.shown = b.Head.Tip(ledger.Processed).Version
	tip := *b.Head.Tip(ledger.Finalized)
	if !b.Head.HasBlock || tip.Version == s.folded && len(b.pruned) == 0 {
		return
	}
	s.folded = tip.Version
	s.folds = append(s.folds, fold{tip.Version, b.horizon, b.pruned, b.Head.Published.Add(s.config.FoldAfter)})
}

// AllShown reports whether everything that was applied is visible.
func (s *Sequencer) AllShown() bool { return s.shown == s.version }

// FoldDue folds the finalized tips below which no query can be reading any more, or all finalized tips
// if the overlays hold too much.
func (s *Sequencer) FoldDue(now time.Time) {
	var bytes int64
	for _, sh := range s.config.Shards {
		bytes += sh.Counters().OverlayBytes.Load()
	}
	full := bytes > s.config.within(maxOverlayBytes, overlayShare)
	s.fold(func(f fold) bool { return full || !now.Before(f.due) })
}

// FoldAll folds everything finalized at once. The caller knows that no query runs.
func (s *Sequencer) FoldAll() { s.fold(func(fold) bool { return true }) }

// fold removes the oldest folds, up to the first for which due is false, and does them as one.
func (s *Sequencer) fold(due func(fold) bool) {
	n, pruned := 0, []*txstore.Block(nil)
	for ; n < len(s.folds) && due(s.folds[n]); n++ {
		pruned = append(pruned, s.folds[n].pruned...)
	}
	if n == 0 {
		return
	}
	last := s.folds[n-1]
	clear(s.folds[:n]) // the array outlives the blocks
	s.folds = s.folds[n:]
	for _, sh := range s.config.Shards {
		sh.Fold(last.to, last.horizon)
	}
	s.config.Stored.Remove(pruned)
}

// NextFold returns when the next fold is due, false if there is none.
func (s *Sequencer) NextFold() (time.Time, bool) {
	if len(s.folds) == 0 {
		return time.Time{}, false
	}
	return s.folds[0].due, true
}
