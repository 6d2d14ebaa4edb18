package engine

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// TestHistoryIsWhatWasPublished reads publications of random streams back from the log, after any
// update it reaches back to, before and after a restart, and holds them against those that came.
func TestHistoryIsWhatWasPublished(t *testing.T) {
	for i, s := range streams() {
		t.Run(s.name, func(t *testing.T) {
			seed := seeded(t, uint64(77+i)).Uint64()
			bubble.Test(t, func(t *testing.T) {
				m := newModel(s.info)
				g := newGenerator(seed, m)
				g.lossy, g.exact, g.reopens = s.lossy, true, s.retention.Slots > 1000
				disk := vfstest.NewMemory()
				c := onDisk(t, disk, Config{Retention: s.retention, SnapshotInterval: 20 * time.Second, SegmentBytes: 16 << 10, Shards: 2})
				n := startNode(t, s.info, c)
				for range streamEvents {
					if e := g.next(); e != nil {
						m.event(e)
						n.send(e)
						time.Sleep(100 * time.Millisecond)
					}
				}
				all := n.published
				holdHistory(t, n.Engine, all)
				n.mustStop()
				c.Dir.Close()
				again := startNode(t, s.info, onDisk(t, disk, Config{Retention: s.retention, Shards: 1}))
				again.send()
				holdHistory(t, again.Engine, all)
				again.mustStop()
			})
		})
	}
}

// holdHistory reads the history after some updates and compares it with what was published.
func holdHistory(t *testing.T, e *Engine, all []*ledger.Publication) {
	t.Helper()
	newest := e.Head().Tips[ledger.Processed].Seq
	oldest := e.Oldest()
	if oldest > newest {
		t.Logf("the log reaches back to %d, the newest update is %d", oldest, newest)
		return
	}
	if oldest > 0 {
		if err := e.Past(oldest-1)(t.Context(), nil); !errors.Is(err, wal.ErrMissing) {
			t.Fatalf("after %d, before what there is: %v, want that it is missing", oldest-1, err)
		}
	}
	for after := oldest; after <= newest; after += 1 + (newest-oldest)/7 {
		at := 0 // in all: the publication that brought the update
		for at < len(all) && all[at].Head.Tips[ledger.Processed].Seq < after {
			at++
		}
		final := all[min(at, len(all)-1)].Head.Tips[ledger.Finalized]
		var got []*ledger.Publication
		past := e.Past(after)
		for before := -1; len(got) > before; { // some at a time: reading goes on where it stopped
			before = len(got)
			err := past(t.Context(), func(p *ledger.Publication) bool {
				got = append(got, p)
				return len(got)-before < 3
			})
			if err != nil {
				t.Fatalf("after %d: %v", after, err)
			}
		}
		skip := len(all) - len(got)
		if skip < 0 || len(got) == 0 {
			t.Fatalf("after %d: %d publications of %d", after, len(got), len(all))
		}
		if first := got[0].Records[0].Version; at < len(all) && first > final.Version {
			t.Fatalf("after %d: begins at record %d, the final block was at %d", after, first, final.Version)
		}
		for i, p := range got {
			samePublication(t, after, p, all[skip+i], i > 0)
		}
	}
}

func samePublication(t *testing.T, after ledger.Seq, got, want *ledger.Publication, levels bool) {
	t.Helper()
	if len(got.Records) != len(want.Records) {
		t.Fatalf("after %d: a publication of %d records, want %d", after, len(got.Records), len(want.Records))
	}
	for i, r := range got.Records {
		if w := want.Records[i]; !bytes.Equal(codec.AppendRecord(nil, r), codec.AppendRecord(nil, w)) {
			t.Fatalf("after %d: record %+v, want %+v", after, r, w)
		}
	}
	for level := range got.Head.Tips {
		g, w := got.Head.Tips[level], want.Head.Tips[level]
		if levels && (g.Slot < w.Slot || g.Slot == w.Slot && g.Hash != w.Hash) {
			t.Fatalf("after %d: level %d stands at slot %d, want %d", after, level, g.Slot, w.Slot)
		}
	}
	g, w := got.Head.Tips[ledger.Processed], want.Head.Tips[ledger.Processed]
	if levels && (g.Version != w.Version || g.Seq != w.Seq || g.Slot != w.Slot) {
		t.Fatalf("after %d: stands at %+v, want %+v", after, g, w)
	}
}
