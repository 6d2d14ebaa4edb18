package engine

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestExportRebuildsTheLedger exports random ledgers and follows each export with a new node: it
// stands at the same blocks on every level, with the same state.
func TestExportRebuildsTheLedger(t *testing.T) {
	for i, s := range streams() {
		t.Run(s.name, func(t *testing.T) {
			for round := range rounds(t, 3) {
				seed := seeded(t, uint64(1000*i+round+1)).Uint64()
				bubble.Test(t, func(t *testing.T) { exportAndImport(t, s, seed) })
				if t.Failed() {
					return
				}
			}
		})
	}
}

func exportAndImport(t *testing.T, s stream, seed uint64) {
	disk, want := randomLedger(t, s, seed)
	info := finite()
	info.GapsAllowed = true
	again := startNode(t, info, Config{Shards: 3})
	defer again.mustStop()
	for _, e := range exported(t, disk) {
		again.send(e)
	}
	again.endInput()
	got := again.Head()
	if got.StateHash != want.StateHash || got.HasBlock != want.HasBlock {
		t.Fatalf("state hash %s, want %s", got.StateHash, want.StateHash)
	}
	for level := range got.Tips {
		if got.Tips[level].Slot != want.Tips[level].Slot || got.Tips[level].Hash != want.Tips[level].Hash {
			t.Errorf("level %d stands at slot %d, want %d", level, got.Tips[level].Slot, want.Tips[level].Slot)
		}
	}
}

// randomLedger follows a random stream for a while and returns what it left, and its last head.
func randomLedger(t *testing.T, s stream, seed uint64) (*vfstest.Memory, *ledger.Head) {
	t.Helper()
	m := s.model()
	g := newGenerator(seed, m)
	g.lossy, g.exact, g.reopens = s.lossy, true, s.retention.Slots > 1000
	disk := vfstest.NewMemory()
	c := onDisk(t, disk, Config{Retention: s.retention, SnapshotInterval: time.Second, SegmentBytes: 64 << 10, Shards: 2})
	defer c.Dir.Close()
	if err := c.Dir.BindFilter(s.filter()); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, s.info, c)
	for range 100 {
		e := g.next()
		if e == nil {
			continue
		}
		m.event(e)
		n.send(e)
		if g.chance(20) {
			time.Sleep(time.Duration(g.r.IntN(int(foldAfter))))
		}
	}
	n.mustStop()
	return disk, n.Head()
}

func exported(t *testing.T, disk vfs.FS) (events []ledger.Event) {
	t.Helper()
	dir, err := OpenDirOn(disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	err = Export(t.Context(), dir, slog.New(slog.DiscardHandler), func(e ledger.Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestExportSaysThatItIsNotAll ends an export early, from without and from within.
func TestExportSaysThatItIsNotAll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk, _ := randomLedger(t, streams()[0], 1)
		dir, err := OpenDirOn(disk, "data")
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		ctx, cancel := context.WithCancel(t.Context())
		err = Export(ctx, dir, slog.New(slog.DiscardHandler), func(ledger.Event) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("an export that was ended: %v, want that it was", err)
		}
		full := errors.New("full")
		err = Export(t.Context(), dir, slog.New(slog.DiscardHandler), func(ledger.Event) error { return full })
		if !errors.Is(err, full) {
			t.Errorf("an export that could not be written: %v, want why", err)
		}
		synctest.Wait()
	})
}
