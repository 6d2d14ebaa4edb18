package engine

import (
	"context"
	"errors"
	"sort"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/wal"
)

// history finds where in the log to begin for a client that resumes after a seq.
type history struct {
	mu     sync.Mutex
	points []finalPoint // oldest first
}

// finalPoint is the block that was the newest final one when the update seq was published.
type finalPoint struct {
	seq   ledger.Seq
	final ledger.Tip
}

// add records which block is final after a publication.
func (h *history) add(seq ledger.Seq, final ledger.Tip) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.points); n > 0 && h.points[n-1].final.Version == final.Version {
		h.points[n-1].seq = min(h.points[n-1].seq, seq) // the earliest serves the most clients
		return
	}
	h.points = append(h.points, finalPoint{seq, final})
}

// prepend adds older points in front.
func (h *history) prepend(older []finalPoint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.points) > 0 {
		n := sort.Search(len(older), func(i int) bool { return older[i].final.Version >= h.points[0].final.Version })
		if n < len(older) { // the same block
			h.points[0].seq = min(h.points[0].seq, older[n].seq)
		}
		older = older[:n]
	}
	h.points = append(older, h.points...)
}

// prune drops points below a version, which are no longer in the log.
func (h *history) prune(below ledger.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := sort.Search(len(h.points), func(i int) bool { return h.points[i].final.Version >= below })
	h.points = append([]finalPoint(nil), h.points[n:]...)
}

// before returns the last point whose seq is below seq, false if there is none.
func (h *history) before(seq ledger.Seq) (finalPoint, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := sort.Search(len(h.points), func(i int) bool { return h.points[i].seq >= seq })
	if n == 0 {
		return finalPoint{}, false
	}
	return h.points[n-1], true
}

// Oldest returns the oldest seq that Past can begin after. Without a log it returns the greatest
// seq.
func (e *Engine) Oldest() ledger.Seq {
	e.history.mu.Lock()
	defer e.history.mu.Unlock()
	if e.log == nil || len(e.history.points) == 0 {
		return ledger.Seq(^uint64(0))
	}
	return e.history.points[0].seq + 1
}

// Past returns a function that reads publications back from the log, in order, until the newest that
// is on disk, or until visit returns false or ctx ends. Each call continues after the publication
// that was visited last. The first call begins early enough to visit every block that was
// not final yet when the update after was published. Of the heads only Tips and HasBlock are set.
// The function returns wal.ErrMissing if after is older than Oldest or was pruned meanwhile.
func (e *Engine) Past(after ledger.Seq) func(ctx context.Context, visit func(*ledger.Publication) bool) error {
	var trail headTrail
	var mark wal.Mark // where the next call continues; zero before the first
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

// readBack adds to history the part of the log before the snapshot that replay
// began at. If that part cannot be read, history begins at the snapshot.
func (r *recovery) readBack(ctx context.Context) {
	if r.from == nil || r.config.OnPublish == nil {
		return // the whole log was replayed, or there are no subscribers
	}
	var older []finalPoint
	trail := headTrail{}
	initial := ledger.Version(0) // counts the base state records at the beginning of the log
	err := r.seq.RememberPast(func(note func(*ledger.Record)) error {
		_, err := wal.Replay(ctx, r.config.Dir.FS(), r.config.Dir.LogDir(), 0, func(commit []wal.Entry) error {
			for i := range commit {
				record := commit[i].Record
				// The base state at the beginning of the log, from record 1 on, precedes the first block, and sources
				// do not repeat it.
				if initial++; initial != record.Version || record.Kind != ledger.BaseRecord {
					initial = 0
					note(record)
				}
				before := trail.levels[ledger.Finalized].Version
				trail.after([]*ledger.Record{record})
				if final := trail.levels[ledger.Finalized]; final.Version != before {
					older = append(older, finalPoint{trail.levels[ledger.Processed].Seq, final})
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

// headTrail computes the tips of all commitment levels from the records after a final block.
type headTrail struct {
	blocks []ledger.Tip // of the chain, from the newest final one on, as far as they were read
	levels [ledger.Commitments]ledger.Tip
}

// after returns the head after more records.
func (t *headTrail) after(records []*ledger.Record) *ledger.Head {
	for _, r := range records {
		if r.Version <= t.levels[ledger.Processed].Version {
			continue // the commit began before the starting point
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

// rollBack removes the blocks above the slot of a rollback from the chain.
func (t *headTrail) rollBack(r *ledger.Record) {
	for n := len(t.blocks); n > 0 && t.blocks[n-1].Slot > r.Slot; n-- {
		t.blocks = t.blocks[:n-1]
	}
	if n := len(t.blocks); n > 0 && t.levels[ledger.Confirmed].Slot > r.Slot {
		t.levels[ledger.Confirmed] = t.blocks[n-1]
		t.levels[ledger.Confirmed].Version, t.levels[ledger.Confirmed].Seq = r.Version, r.LastSeq()
	}
}

// status raises a level to the block of a status record if it is below that.
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

// raise raises a level to a block, and all levels under it that are lower.
func (t *headTrail) raise(level ledger.Commitment, to ledger.Tip) {
	for ; level > ledger.Processed; level-- {
		if t.levels[level].Slot < to.Slot {
			t.levels[level] = to
		}
	}
}
