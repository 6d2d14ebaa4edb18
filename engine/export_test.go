package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// mustExport exports what a node that is stopped left on a disk, and follows the export with a new node: it stands at the same
// blocks on every level, with the same state, and answers as the model. An export that ends early, from without and from within,
// says so.
func mustExport(t *testing.T, s stream, disk *vfstest.Memory, old *subject, m *model) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ledgertest.ErrorIs(t, exportTo(t, ctx, disk, func(ledger.Event) error { cancel(); return nil }), context.Canceled, "an export that was ended")
	full := errors.New("full")
	ledgertest.ErrorIs(t, exportTo(t, t.Context(), disk, func(ledger.Event) error { return full }), full, "an export that could not be written")
	want := old.Head()
	info := finite()
	info.GapsAllowed = true
	copied := vfstest.NewMemory()
	again := startNode(t, info, bound(t, onDisk(t, copied, Config{Shards: 3, Retention: s.retention}), nil, s.dataPrograms()))
	must(t, exportTo(t, t.Context(), disk, func(e ledger.Event) error {
		again.send(e)
		return nil
	}))
	again.endInput()
	m.info = info
	standsAsModel(t, s, again, want, m)
	again.close()
	if want.HasBlock {
		restarted := startNode(t, info, onDisk(t, copied, Config{Shards: 2, Retention: s.retention}))
		synctest.Wait()
		standsAsModel(t, s, restarted, want, m)
	}
}

// standsAsModel holds where a node stands against a head of another, and what it answers against a model.
func standsAsModel(t *testing.T, s stream, again *subject, want *ledger.Head, m *model) {
	t.Helper()
	got := again.Head()
	if got.StateHash != want.StateHash || got.HasBlock != want.HasBlock {
		t.Fatalf("state hash %s, want %s", got.StateHash, want.StateHash)
	}
	for level := range got.Tips {
		ledgertest.Equal(t, got.Tips[level].Slot, want.Tips[level].Slot, "the slot of level %d", level)
		ledgertest.Equal(t, got.Tips[level].Hash, want.Tips[level].Hash, "the hash of level %d", level)
		ledgertest.ErrorIs(t, answersAsModel(t, s, again.Engine, m, ledger.Commitment(level)), nil, "level %d", level)
	}
}

// answersAsModel holds what a node answers at a level against a model. Where an account was closed is told of
// those alone that are open at the finalized block: an export holds no other closed ones, and nothing that a filter forgot.
func answersAsModel(t *testing.T, s stream, e *Engine, m *model, level ledger.Commitment) error {
	c, p := newComparer(t, rand.New(rand.NewPCG(1, 2)), m, s.retention), m.points[m.version()]
	want, final := c.shownOf(p, e.Head(), level), c.shownOf(p, e.Head(), ledger.Finalized)
	accounts, _, err := e.Accounts(at(level), c.keys)
	for i := range accounts {
		k := c.keys[i]
		if got, want := seeAccount(&accounts[i]), want.world.see(k); got != want {
			return fmt.Errorf("account %d: got %v, want %v", i, got, want)
		}
		if closed := want.world.accounts[k]; s.wanted == nil && final.world.accounts[k].open && !closed.open {
			_, _, err := e.Account(at(level), k)
			if why, _ := absence(err); why.Absence != ledger.AccountClosed {
				return fmt.Errorf("account %d: %v, want one that is closed", i, err)
			}
		}
	}
	return errors.Join(err, c.mints(e, at(level), want), c.lists(e, at(level), want), c.transactions(e, at(level), want))
}

// exportTo exports what a disk holds.
func exportTo(t *testing.T, ctx context.Context, disk vfs.FS, emit func(ledger.Event) error) error {
	t.Helper()
	dir := onDisk(t, disk, Config{}).Dir
	defer dir.Close()
	return Export(ctx, dir, slog.New(slog.DiscardHandler), emit)
}
