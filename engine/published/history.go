package published

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"sync"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/wal"
)

// History finds where in the log to begin for a client that resumes after a seq.
type History struct {
	board *Board
	dir   *datadir.Dir // of the log

	mu     sync.Mutex
	points []snapshot.Point // oldest first; no two have the same final block
}

// NewHistory returns a history without a point, of the log in a data directory.
func NewHistory(board *Board, dir *datadir.Dir) *History { return &History{board: board, dir: dir} }

// Add records which block is final after a publication.
func (h *History) Add(seq ledger.Seq, final ledger.Tip) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.points); n > 0 && h.points[n-1].Final.Version == final.Version {
		h.points[n-1].Seq = min(h.points[n-1].Seq, seq) // the earliest serves the most clients
		return
	}
	h.points = append(h.points, snapshot.Point{Seq: seq, Final: final})
}

// maxPoints bounds the points that a snapshot keeps: a client that resumes between two of them reads from the first.
const maxPoints = 1024

// Points returns points for a snapshot, the newest and the oldest among them.
func (h *History) Points() []snapshot.Point {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := slices.Clone(h.points)
	for len(kept) > maxPoints {
		for i := range kept[:(len(kept)+1)/2] {
			kept[i] = kept[2*i]
		}
		kept = append(kept[:(len(kept)+1)/2], h.points[len(h.points)-1])
	}
	return kept
}

// Prune drops points below a version, which are no longer in the log.
func (h *History) Prune(below ledger.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.points = slices.DeleteFunc(h.points, func(p snapshot.Point) bool { return p.Final.Version < below })
}

// before returns the last point whose seq is below seq, false if there is none.
func (h *History) before(seq ledger.Seq) (snapshot.Point, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := sort.Search(len(h.points), func(i int) bool { return h.points[i].Seq >= seq })
	if n == 0 {
		return snapshot.Point{}, false
	}
	return h.points[n-1], true
}

// Oldest returns the oldest seq that Past can begin after, the greatest seq before there is one.
func (h *History) Oldest() ledger.Seq {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.points) == 0 {
		return ledger.Seq(math.MaxUint64)
	}
	return h.points[0].Seq + 1
}

// Past returns a function that reads publications back from the log, in order, until the newest that
// is on disk, or until visit returns false or ctx ends. Each call continues after the publication
// that was visited last. The first call begins early enough to visit every block that was
// not final yet when the update after was published. Of the heads only Tips and HasBlock are set.
// The function returns wal.ErrMissing if after is older than Oldest or was pruned meanwhile.
func (h *History) Past(after ledger.Seq) func(ctx context.Context, visit func(*ledger.Publication) bool) error {
	var trail Trail
	var log *wal.Reader // nil before the first call
	return func(ctx context.Context, visit func(*ledger.Publication) bool) error {
		if err := h.board.FenceError(); err != nil {
			return err
		}
		if log == nil {
			at, ok := h.before(after)
			if !ok {
				return wal.ErrMissing
			}
			trail = Trail{blocks: []ledger.Tip{at.Final}, levels: [ledger.Commitments]ledger.Tip{at.Final, at.Final, at.Final}}
			log = wal.NewReader(h.dir.FS(), h.dir.LogDir(), at.Final.Version)
		}
		_, err := log.Read(ctx, func(commit []wal.Entry) error {
			records := make([]*ledger.Record, len(commit))
			for i := range commit {
				records[i] = commit[i].Record
			}
			if !visit(&ledger.Publication{Head: trail.After(records), Records: records}) {
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

var errEnoughRead = errors.New("enough was read")
