package engine

import (
	"context"
	"errors"
	"sort"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/wal"
)

// history knows where in the log to begin for a client that comes back with a seq.
type history struct {
	mu     sync.Mutex
	places []place // oldest first
}

// place says which block was the newest final one when the update seq was published.
type place struct {
	seq   ledger.Seq
	final ledger.Tip
}

// add notes what is final after a publication.
func (h *history) add(seq ledger.Seq, final ledger.Tip) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.places); n > 0 && h.places[n-1].final.Version == final.Version {
		h.places[n-1].seq = min(h.places[n-1].seq, seq) // the earliest says most
		return
	}
	h.places = append(h.places, place{seq, final})
}

// prepend adds older places in front.
func (h *history) prepend(older []place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.places) > 0 {
		n := sort.Search(len(older), func(i int) bool { return older[i].final.Version >= h.places[0].final.Version })
		if n < len(older) { // the same block: the earliest seq says most
			h.places[0].seq = min(h.places[0].seq, older[n].seq)
		}
		older = older[:n]
	}
	h.places = append(older, h.places...)
}

// prune forgets places before a version, which the log does not reach back to any more.
func (h *history) prune(below ledger.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := sort.Search(len(h.places), func(i int) bool { return h.places[i].final.Version >= below })
	h.places = append([]place(nil), h.places[n:]...)
}

// before returns the last place that was noted before the update seq was published.
func (h *history) before(seq ledger.Seq) (place, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := sort.Search(len(h.places), func(i int) bool { return h.places[i].seq >= seq })
	if n == 0 {
		return place{}, false
	}
	return h.places[n-1], true
}

// Oldest returns the oldest seq that Publications can begin after; nothing is that old where
// there is no log.
func (e *Engine) Oldest() ledger.Seq {
	e.history.mu.Lock()
	defer e.history.mu.Unlock()
	if e.log == nil || len(e.history.places) == 0 {
		return ledger.Seq(^uint64(0))
	}
	return e.history.places[0].seq + 1
}

// Past returns a function that reads publications back from the log, in order, until the newest that
// is on disk, or until visit returns false or ctx ends. Each call goes on after the publication
// that was visited last. The first one begins early enough that every block is visited that was
// not final yet when the update after was published. A head says what stands at each level, and
// nothing else. A seq older than Oldest, and what was pruned since, is wal.ErrMissing.
func (e *Engine) Past(after ledger.Seq) func(ctx context.Context, visit func(*ledger.Publication) bool) error {
	var trail headTrail
	var mark wal.Mark // where reading goes on; zero: it has not begun
	return func(ctx context.Context, visit func(*ledger.Publication) bool) error {
		if err := e.errFenced(); err != nil {
			return err
		}
		if mark == (wal.Mark{}) {
			at, ok := e.history.before(after)
			if !ok || e.log == nil {
				return wal.ErrMissing
			}
			trail = headTrail{blocks: []ledger.Tip{at.final}, levels: [ledger.Commitments]ledger.Tip{at.final, at.final, at.final}}
			mark = wal.MarkAt(at.final.Version)
		}
		_, err := wal.ReplayFrom(ctx, e.config.Dir.FS(), e.config.Dir.LogDir(), &mark, func(commit []wal.Entry) error {
			records := make([]*ledger.Record, len(commit))
			for i := range commit {
				records[i] = commit[i].Record
			}
			if !visit(&ledger.Publication{Head: trail.after(records), Records: records}) {
				return errEnoughRead
			}
			return nil
		})
		if errors.Is(err, errEnoughRead) {
			return nil
		}
		return err
	}
}

// readBack makes history reach back to where the log begins, behind the snapshot that the replay
// began at. What cannot be read only makes it shorter.
func (r *recovery) readBack(ctx context.Context) {
	if r.from == nil || r.config.OnPublish == nil {
		return // all of the log was replayed, or nobody is told of publications
	}
	var older []place
	trail := headTrail{}
	came := ledger.Version(0)
	err := r.seq.RememberPast(func(note func(*ledger.Record)) error {
		_, err := wal.Replay(ctx, r.config.Dir.FS(), r.config.Dir.LogDir(), 0, func(commit []wal.Entry) error {
			for i := range commit {
				record := commit[i].Record
				// What the log begins with at record 1 came before the first block, and is not shown again.
				if came++; came != record.Version || record.Kind != ledger.BaseRecord {
					came = 0
					note(record)
				}
				before := trail.levels[ledger.Finalized].Version
				trail.after([]*ledger.Record{record})
				if final := trail.levels[ledger.Finalized]; final.Version != before {
					older = append(older, place{trail.levels[ledger.Processed].Seq, final})
				}
				if trail.levels[ledger.Finalized].Version >= r.from.Version {
					return errEnoughRead
				}
			}
			return nil
		}, nil)
		return err
	})
	if err != nil && !errors.Is(err, errEnoughRead) && ctx.Err() == nil {
		r.logger.Warn("the log before the snapshot cannot be read: clients can resume from the snapshot on", "error", err)
		return
	}
	r.history.prepend(older)
}

var errEnoughRead = errors.New("enough was read")

// headTrail follows records behind a final block and knows what stands at each level after them.
type headTrail struct {
	blocks []ledger.Tip // of the chain, from the newest final one on, as far as they were seen
	levels [ledger.Commitments]ledger.Tip
}

// after returns the head after more records.
func (t *headTrail) after(records []*ledger.Record) *ledger.Head {
	for _, r := range records {
		if r.Version <= t.levels[ledger.Processed].Version {
			continue // the commit began before
		}
		switch r.Kind {
		case ledger.BlockRecord:
			t.blocks = append(t.blocks, ledger.Tip{Version: r.Version, Slot: r.Slot, Hash: r.Hash, Seq: r.LastSeq(), Time: r.Time})
		case ledger.RollbackRecord:
			t.rollBack(r)
		case ledger.StatusRecord:
			t.status(r)
		}
		if n := len(t.blocks); n > 0 {
			t.levels[ledger.Processed] = t.blocks[n-1]
		}
		t.levels[ledger.Processed].Version, t.levels[ledger.Processed].Seq = r.Version, r.LastSeq()
	}
	return &ledger.Head{Tips: t.levels, HasBlock: true}
}

// rollBack takes the blocks above that of a rollback off the chain.
func (t *headTrail) rollBack(r *ledger.Record) {
	for n := len(t.blocks); n > 0 && t.blocks[n-1].Slot > r.Slot; n-- {
		t.blocks = t.blocks[:n-1]
	}
	if n := len(t.blocks); n > 0 && t.levels[ledger.Confirmed].Slot > r.Slot {
		t.levels[ledger.Confirmed] = t.blocks[n-1]
		t.levels[ledger.Confirmed].Version, t.levels[ledger.Confirmed].Seq = r.Version, r.LastSeq()
	}
}

// status moves a level up to the block that a status is about, if that is past it.
func (t *headTrail) status(r *ledger.Record) {
	for i, b := range t.blocks {
		if b.Slot != r.Slot || b.Hash != r.Hash {
			continue
		}
		switch r.Status {
		case ledger.StatusFinalized:
			t.raise(ledger.Finalized, b)
			t.blocks = t.blocks[i:]
		case ledger.StatusConfirmed:
			t.raise(ledger.Confirmed, b)
		}
		return
	}
}

// raise moves a level, and those below that must not be behind it.
func (t *headTrail) raise(level ledger.Commitment, to ledger.Tip) {
	for ; level > ledger.Processed; level-- {
		if t.levels[level].Slot < to.Slot {
			t.levels[level] = to
		}
	}
}
