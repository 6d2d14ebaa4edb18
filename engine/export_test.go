package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// mustExport exports what a node that is stopped left on a disk, and follows the export with a new node: it stands at the same
// blocks on every level, with the same state, and answers alike. An export that ends early, from without and from within, says so.
func mustExport(t *testing.T, s stream, disk *vfstest.Memory, old *subject) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ledgertest.ErrorIs(t, exportTo(t, ctx, disk, func(ledger.Event) error { cancel(); return nil }), context.Canceled, "an export that was ended")
	full := errors.New("full")
	ledgertest.ErrorIs(t, exportTo(t, t.Context(), disk, func(ledger.Event) error { return full }), full, "an export that could not be written")
	want := old.Head()
	info := finite()
	info.GapsAllowed = true
	again := startNode(t, info, Config{Shards: 3, Retention: s.retention})
	must(t, exportTo(t, t.Context(), disk, func(e ledger.Event) error {
		again.send(e)
		return nil
	}))
	again.endInput()
	got := again.Head()
	if got.StateHash != want.StateHash || got.HasBlock != want.HasBlock {
		t.Fatalf("state hash %s, want %s", got.StateHash, want.StateHash)
	}
	for level := range got.Tips {
		ledgertest.Equal(t, got.Tips[level].Slot, want.Tips[level].Slot, "the slot of level %d", level)
		ledgertest.Equal(t, got.Tips[level].Hash, want.Tips[level].Hash, "the hash of level %d", level)
	}
	if !want.HasBlock {
		return
	}
	// What is not final is the export's own; a recovered node answers what the old one did.
	dir := onDisk(t, disk, Config{Shards: 2, Retention: s.retention, Filter: s.filter()})
	old = startNode(t, s.info, dir)
	synctest.Wait()
	for level := range want.Tips {
		if c := old.seq.Chain().Confirmed; level == int(ledger.Confirmed) && c.ConfirmedAgain > c.Version {
			continue // base state came with a rollback: the export has it after the block
		}
		if got.Root == got.Tips[level].Slot {
			continue // the root is final at once: base state that came next is a part of it
		}
		ledgertest.ErrorIs(t, sameAnswers(old.Engine, again.Engine, ledger.Commitment(level)), nil, "level %d", level)
	}
}

// sameAnswers holds what two nodes answer of accounts and mints against each other. Where an account was closed is told of
// those alone that are open at the finalized block: an export holds no other closed ones, and nothing that a filter forgot.
func sameAnswers(a, b *Engine, level ledger.Commitment) error {
	var keys []ledger.Pubkey
	for i := range testKeys {
		keys = append(keys, key(i))
		x, _, errX := a.Reader.Account(at(level), key(i))
		y, _, errY := b.Reader.Account(at(level), key(i))
		wasClosed, _ := absence(errX)
		isClosed, _ := absence(errY)
		_, _, errFinal := a.Reader.Account(at(ledger.Finalized), key(i))
		closed := errFinal == nil && a.config.Filter == nil
		if errX == nil && errY == nil && seeAccount(&x) != seeAccount(&y) || (errX == nil) != (errY == nil) || closed && wasClosed.Absence != isClosed.Absence {
			return fmt.Errorf("account %d: %v %v, want %v %v", i, seeAccount(&y), errY, seeAccount(&x), errX)
		}
	}
	was, _, errX := a.Mints(at(level), keys)
	is, _, errY := b.Mints(at(level), keys)
	for i := range keys {
		if (was[i] == nil) != (is[i] == nil) || was[i] != nil && !was[i].SameFacts(is[i]) {
			return fmt.Errorf("mint %d: %+v, want %+v", i, is[i], was[i])
		}
	}
	return errors.Join(errX, errY)
}

// exportTo exports what a disk holds.
func exportTo(t *testing.T, ctx context.Context, disk vfs.FS, emit func(ledger.Event) error) error {
	t.Helper()
	dir := onDisk(t, disk, Config{}).Dir
	defer dir.Close()
	return Export(ctx, dir, slog.New(slog.DiscardHandler), emit)
}
