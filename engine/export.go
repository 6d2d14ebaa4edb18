package engine

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/reader"
	"ledgerd/engine/sequencer"
	"ledgerd/shard"
	"ledgerd/snapshot/wal"
)

const (
	// exportPiece is how many accounts or mints one exported event holds.
	exportPiece = 1000
	// exportBytes bounds the data of an event, except for that of its last account, so that the event can be read back.
	exportBytes = 16 << 20
)

// Export recovers what a data directory holds and emits the events that rebuild the same ledger: base state at the
// newest finalized block, the finalized blocks that are held, without their writes, and then the blocks and the base
// state that are not final, in their order. It changes nothing that a node reads. It stops at the first error of
// emit and returns it.
func Export(ctx context.Context, dir *datadir.Dir, log *slog.Logger, emit func(ledger.Event) error) error {
	e := New(Config{Dir: dir, Logger: log, Retention: sequencer.Retention{Slots: math.MaxInt64, Bytes: math.MaxInt}})
	r := &recovery{node: e, verifyFirst: true}
	err := r.run(ctx, func(ctx context.Context) error {
		return (&exporter{node: e, emit: emit}).run(ctx)
	})
	if err == nil {
		err = ctx.Err() // what was emitted is not all
	}
	return err
}

// exporter emits the events of a recovered ledger.
type exporter struct {
	node   *Engine
	emit   func(ledger.Event) error
	bases  []*ledger.Record // base state that came after the finalized block
	newest ledger.Slot      // the highest slot of base state that anew emitted
	above  ledger.Slot      // what anew was told last
}

func (x *exporter) run(ctx context.Context) error {
	c, head := x.node.seq.Chain(), x.node.seq.Head()
	slot, version := head.Tip(ledger.Processed).Slot, head.Tip(ledger.Processed).Version
	if c.Finalized != nil {
		slot, version = c.Finalized.Slot(), c.Finalized.Version
	}
	if err := x.base(ctx, slot, version); err != nil {
		return err
	}
	if c.Finalized == nil {
		return nil
	}
	_, blocks := x.node.seq.Snapshot()
	for _, b := range blocks {
		final := *b.Whole()
		final.Status = ledger.Finalized
		if err := x.emit(&final); err != nil {
			return err
		}
	}
	// The first status shows the reader that statuses come.
	if err := x.emit(&ledger.SlotStatus{Slot: slot, Status: ledger.StatusFinalized}); err != nil {
		return err
	}
	if err := x.readBases(ctx); err != nil {
		return err
	}
	return x.unfinalized()
}

// readBases reads the base state that came after the finalized block from the log.
func (x *exporter) readBases(ctx context.Context) error {
	last, dir := x.node.seq.Chain().Finalized.Version, x.node.config.Dir
	_, err := wal.NewReader(dir.FS(), dir.LogDir(), last).Read(ctx, func(commit []wal.Entry) error {
		for i := range commit {
			if r := commit[i].Record; r.Kind == ledger.BaseRecord && r.Version > last {
				x.bases = append(x.bases, r)
			}
		}
		return nil
	})
	return err
}

// unfinalized emits the blocks of the chain that are not final, the base state that came between them, and which of the
// blocks is confirmed.
func (x *exporter) unfinalized() error {
	c := x.node.seq.Chain()
	tip, below := c.Tip, c.Finalized
	var path []*chain.Node
	for n := tip; n != below; n = n.Parent {
		path = append(path, n)
	}
	for _, n := range slices.Backward(path) {
		if err := x.after(below, n.Version-1); err != nil {
			return err
		}
		below = n
		b := *n.Block
		b.Status = ledger.Processed
		if err := x.leaveOut(n, &b); err != nil {
			return err
		}
		if n == c.Confirmed {
			b.Status = ledger.Confirmed
		}
		if err := x.emit(&b); err != nil {
			return err
		}
	}
	return x.after(tip, x.node.seq.Version())
}

// after emits the accounts of base state whose records come after a block of the chain and not after version v, as the
// levels show them. If the block was confirmed again, its level shows base state that came until then.
func (x *exporter) after(n *chain.Node, v ledger.Version) error {
	again := n.Version
	if n == x.node.seq.Chain().Confirmed {
		again = max(again, n.ConfirmedAgain)
	}
	if err := x.between(n, n.Version, again, ledger.Confirmed); err != nil {
		return err
	}
	return x.between(n, again, v, ledger.Processed)
}

// between emits the accounts of base state whose records come after version from and not after version to, as they were
// at version to: each is closed, and written again at a slot above that of the block below, so that the result
// does not depend on what blocks that were undone since, and earlier base state, led to.
func (x *exporter) between(below *chain.Node, from, to ledger.Version, level ledger.Commitment) error {
	var keys []ledger.Pubkey
	for _, r := range x.bases {
		if r.Version <= from || r.Version > to {
			continue
		}
		for i := range r.Base.Accounts {
			keys = append(keys, r.Base.Accounts[i].Pubkey)
		}
		for i := range r.Base.Mints {
			keys = append(keys, r.Base.Mints[i].Pubkey)
		}
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	for some := range slices.Chunk(slices.Compact(keys), exportPiece) {
		if err := x.anew(below.Slot()+1, to, some, level); err != nil {
			return err
		}
	}
	return nil
}

// leaveOut removes from a block the writes of accounts that the filter excludes, since the node that reads the export
// has no filter.
func (x *exporter) leaveOut(n *chain.Node, b *ledger.Block) error {
	if x.node.config.Dir.Filter() == nil {
		return nil
	}
	keys := make([]ledger.Pubkey, len(b.Accounts))
	for i := range b.Accounts {
		keys[i] = b.Accounts[i].Pubkey
	}
	held := make(map[ledger.Pubkey]bool)
	for _, v := range []ledger.Version{n.Version - 1, n.Version} {
		accounts, err := reader.Scatter(x.node.shards, keys, v, time.Now().Add(scanDeadline), (*shard.Shard).Accounts)
		if err != nil {
			return err
		}
		for i := range accounts {
			held[keys[i]] = held[keys[i]] || accounts[i].Exists()
		}
	}
	var left []ledger.AccountWrite
	var mints []ledger.Pubkey
	for i := range b.Accounts {
		w := &b.Accounts[i]
		switch {
		case held[w.Pubkey]:
			left = append(left, *w)
		case w.Lamports == 0 || w.Known&ledger.FieldMint != 0:
			// The facts of a mint are held even if a filter excludes its account. The block makes them unknown, and
			// then states those that are known.
			left = append(left, ledger.AccountWrite{Pubkey: w.Pubkey})
			mints = append(mints, w.Pubkey)
		}
	}
	facts, err := reader.Scatter(x.node.shards, mints, n.Version, time.Now().Add(scanDeadline), (*shard.Shard).Mints)
	if err != nil {
		return err
	}
	b.Accounts, b.Mints = left, slices.Clone(b.Mints)
	for i, m := range facts {
		if m != nil {
			b.Mints = append(b.Mints, ledger.MintWrite{Pubkey: mints[i], Mint: m.Facts()})
		}
	}
	return nil
}

// anew emits accounts and mints as they are at a version, as base state of the slot or of a later one, so that no earlier
// base state takes precedence. An account that is closed is first closed at its own slot or, if that is final, at the
// newest finalized slot.
func (x *exporter) anew(slot ledger.Slot, v ledger.Version, keys []ledger.Pubkey, level ledger.Commitment) error {
	late := time.Now().Add(scanDeadline)
	accounts, err := reader.Scatter(x.node.shards, keys, v, late, (*shard.Shard).Accounts)
	if err != nil {
		return err
	}
	mints, err := reader.Scatter(x.node.shards, keys, v, late, (*shard.Shard).Mints)
	if err != nil {
		return err
	}
	closed, written := &ledger.BaseState{Level: ledger.Some(level)}, &ledger.BaseState{Level: ledger.Some(level)}
	if x.newest = max(x.newest, slot); x.newest > slot && slot > x.above {
		x.newest++ // base state that equals one from before the block below would be taken for a repetition of that one
	}
	x.above = slot
	for i, k := range keys {
		closes := ledger.AccountWrite{Pubkey: k}
		closed.Accounts = append(closed.Accounts, closes)
		if a := &accounts[i]; a.Exists() {
			written.Accounts = append(written.Accounts, a.Write())
		} else if at := max(a.Since.Slot(), x.node.seq.Chain().Finalized.Slot()); a.Since != 0 {
			x.newest = max(x.newest, at)
			early := &ledger.BaseState{Slot: at, Level: closed.Level, Accounts: []ledger.AccountWrite{closes}}
			if err := x.emit(early); err != nil {
				return err
			}
		}
		if m := mints[i]; m != nil {
			written.Mints = append(written.Mints, ledger.MintWrite{Pubkey: k, Mint: m.Facts()})
		}
	}
	closed.Slot, written.Slot = x.newest, x.newest
	if err := x.emit(closed); err != nil {
		return err
	}
	all, data := written.Accounts, 0
	for i, from := 0, 0; i < len(all); i++ {
		if data += all[i].Data.SizeBytes(); data > exportBytes {
			piece := *written
			piece.Accounts, piece.Mints = all[from:i+1], nil
			if err := x.emit(&piece); err != nil {
				return err
			}
			from, data, written.Accounts = i+1, 0, all[i+1:]
		}
	}
	return x.emit(written)
}

// base emits all live accounts and mint facts at a version, as base state of a slot.
func (x *exporter) base(ctx context.Context, slot ledger.Slot, version ledger.Version) error {
	var failed error
	data := 0 // since the last piece that was ended for its sake
	piece := &ledger.BaseState{Slot: slot}
	flush := func(atLeast int) bool {
		if n := len(piece.Accounts) + len(piece.Mints); n >= atLeast && n > 0 {
			if failed = x.emit(piece); failed == nil {
				failed = ctx.Err()
			}
			piece = &ledger.BaseState{Slot: slot}
		}
		return failed == nil
	}
	err := x.node.visit(version, func(a *ledger.Account) bool {
		w := a.Write()
		if w.Token != nil {
			w.Token = new(*w.Token) // the event outlives the account
		}
		piece.Accounts = append(piece.Accounts, w)
		if data += a.Data.SizeBytes(); data > exportBytes {
			data = 0
			return flush(1)
		}
		return flush(exportPiece)
	}, func(m *ledger.MintWrite) bool {
		piece.Mints = append(piece.Mints, *m)
		return flush(exportPiece)
	})
	switch {
	case err != nil:
		return fmt.Errorf("cannot walk the state at slot %d: %w", slot, err)
	case failed == nil:
		flush(1)
	}
	return failed
}

// scanDeadline bounds one query of an export. It is long, since no client waits for it.
const scanDeadline = time.Minute
