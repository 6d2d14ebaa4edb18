package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

const (
	// archivedBlocks is how many finalized blocks gather before they are written, so that there are few files. archivedBytes bounds
	// the bytes that gather, and that are written at once: blocks that wait stay in memory beyond their retention.
	archivedBlocks, archivedBytes = 256, 32 << 20
	// archiveShare is the part of a core that writing takes.
	archiveShare = 0.1
	// archiveReserve is how many times the free space of ingest the archive leaves: so it shrinks before snapshots stop.
	archiveReserve = 3
	// archiveRetry is how long after a failure, or without a new block, the disk is checked again.
	archiveRetry = time.Second
)

var errNoRoom = errors.New("the disk is too full for history")

// openArchive opens the archive of the data directory, if there is to be one.
func (e *Engine) openArchive() error {
	if e.config.HistoryBytes <= 0 {
		return nil
	}
	a, err := snapshot.OpenArchive(e.config.Dir.FS(), e.config.Dir.HistoryDir(), e.config.HistoryBytes, e.config.Dir.Ledgers, e.config.Logger)
	if err != nil {
		return err
	}
	e.ReadArchive(a)
	return nil
}

// archivedBelow returns the slot below which memory may drop finalized blocks: higher blocks are not on disk yet. While the archive
// cannot be written, there is no such bound.
func (e *Engine) archivedBelow() ledger.Slot {
	if a := e.Archive(); a != nil && !e.archiveFails.Load() {
		return a.Next()
	}
	return math.MaxUint64
}

// archive writes finalized blocks into the archive until ctx ends.
func (e *Engine) archive(ctx context.Context) {
	a := e.Archive()
	if a == nil {
		return
	}
	for {
		changed := e.board.Next() // before the head is read, so that none is missed
		more, err := e.archiveMore(ctx, a)
		for more && err == nil {
			more, err = e.archiveMore(ctx, a)
		}
		if err != nil && ctx.Err() == nil && !e.archiveFails.Swap(true) {
			e.config.Logger.Error("history is not written: blocks that memory drops will not be indexed until that has passed", "error", err)
		}
		if err == nil {
			e.archiveFails.Store(false)
		} else {
			changed = nil
		}
		select {
		case <-changed:
		case <-time.After(archiveRetry):
		case <-ctx.Done():
			return
		}
	}
}

// archiveMore makes room if the disk runs short, and writes the finalized blocks that are not in the archive once there are enough.
// It reports whether it wrote some: there may be more.
func (e *Engine) archiveMore(ctx context.Context, a *snapshot.Archive) (wrote bool, err error) {
	room := e.archiveRoom()
	if room < 0 {
		for room < 0 && a.Stats().Runs > 0 {
			room += a.Shrink() // some file systems report freed space late
		}
		return false, errNoRoom
	}
	h := e.Head()
	if h == nil || !h.HasBlock {
		return false, nil
	}
	final := h.Tip(ledger.Finalized).Slot
	blocks := sequencer.Blocks(h)
	blocks = blocks[:blocks.FirstFrom(final+1)]
	a.PassOver(final, func(from, below ledger.Slot) bool { return blocks.FirstFrom(from) < blocks.FirstFrom(below) })
	from := blocks.FirstFrom(a.Next())
	many := blocks[from:]
	bytes, atOnce := 0, min(archivedBytes, e.config.Retention.Bytes/4)
	for i, b := range many {
		if bytes += b.SizeBytes(); bytes >= atOnce {
			many = many[:i+1]
			break
		}
	}
	if len(many) < e.config.HistoryBlocks && bytes < atOnce {
		return false, nil
	}
	if err := e.log.Load().Sync(); err != nil { // nothing is in the archive that a crash could take from the ledger
		return false, err
	}
	var previous ledger.Opt[ledger.Slot]
	switch {
	case from > 0:
		previous = ledger.Some(blocks[from-1].Block.Slot)
	case a.Next() > 0 && a.Next() >= h.Floor:
		previous = ledger.Some(a.Next() - 1)
	case a.Next() > 0:
		e.config.Logger.Warn("history lacks blocks that memory had to drop before they were written", "from_slot", uint64(a.Next()), "below_slot", uint64(h.Floor))
	}
	size := float64(bytes) / float64(len(many))
	return true, a.Add(ctx, sequencer.Held(many, previous), room, snapshot.Pace{Share: func() float64 {
		// Up to full speed, as memory waits for it, and before it has to drop blocks that are not written.
		blocks := sequencer.Blocks(cmp.Or(e.Head(), h))
		unwritten := float64(len(blocks) - blocks.FirstFrom(a.Next()))
		return archiveShare + max(unwritten/float64(16*e.config.HistoryBlocks), 2*unwritten*size/float64(e.config.Retention.Bytes))
	}})
}

// archiveRoom returns how many bytes history may take besides what it has; below 0 where the disk runs short.
func (e *Engine) archiveRoom() int64 {
	free, err := e.config.Dir.FS().FreeBytes(e.config.Dir.Path())
	if err != nil {
		return 0 // the write itself will fail if there is no space
	}
	// The next segment of the log takes its room at once, and ingest pauses where it has none.
	segment := uint64(cmp.Or(e.config.SegmentBytes, wal.DefaultSegmentBytes))
	reserve := max(archiveReserve*e.writer.MinFreeBytes, e.writer.MinFreeBytes+segment)
	return int64(free) - int64(reserve) - e.writer.Snapshots().Bytes
}
