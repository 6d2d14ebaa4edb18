package engine

import (
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// holdHistory reads publications back from the log, after any update it reaches back to, and holds them against those that
// came.
func holdHistory(t *testing.T, e *Engine, all []*ledger.Publication) {
	t.Helper()
	newest := e.Head().Tips[ledger.Processed].Seq
	oldest := e.Oldest()
	if oldest > newest {
		t.Logf("the log reaches back to %d, the newest update is %d", oldest, newest)
		return
	}
	if oldest > 0 {
		ledgertest.ErrorIs(t, e.Past(oldest-1)(t.Context(), nil), wal.ErrMissing, "after %d, before what there is", oldest-1)
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
			want := all[skip+i]
			if !slices.Equal(encoded(p.Records), encoded(want.Records)) {
				t.Fatalf("after %d: published %d records, want %d, or others", after, len(p.Records), len(want.Records))
			}
			for level, g := range p.Head.Tips {
				w := want.Head.Tips[level]
				newest := level == int(ledger.Processed) && (g.Version != w.Version || g.Seq != w.Seq || g.Slot != w.Slot)
				if i > 0 && (newest || g.Slot < w.Slot || g.Slot == w.Slot && g.Hash != w.Hash) { // the first has no levels yet
					t.Fatalf("after %d: level %d stands at %+v, want %+v", after, level, g, w)
				}
			}
		}
	}
}

// A machine of little memory holds fewer blocks than were asked for; one of much holds those.
func TestBlocksOfThePastTakeAShareOfTheMemory(t *testing.T) {
	for limit, want := range map[int64]int{0: 2 << 30, 256 << 20: 32 << 20, 64 << 30: 2 << 30} {
		ledgertest.Equal(t, New(onDisk(t, vfstest.NewMemory(), Config{MemoryLimit: limit})).config.Retention.Bytes, want, "bytes of blocks within %d bytes of memory", limit)
	}
}
