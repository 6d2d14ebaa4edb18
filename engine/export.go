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
)

// exportPiece is how many accounts or mints one exported event holds.
const exportPiece = 1000

// Export recovers what a data directory holds and emits the events that rebuild the same ledger: base state at the
// newest finalized block, the finalized blocks that are held, without their writes, and then the blocks and the base
// state that are not final, in their order. It changes nothing that a node reads. It stops at the first error of
// emit and returns it.
func Export(ctx context.Context, dir *datadir.Dir, log *slog.Logger, emit func(ledger.Event) error) error {
	e := New(Config{Dir: dir, Logger: log, Retention: sequencer.Retention{Slots: math.MaxInt64, Bytes: math.MaxInt}})
	err := e.recovered(ctx, func(ctx context.Context, r *recovery) error {
		return (&exporter{recovery: r, emit: emit}).run(ctx)
	})
	if err == nil {
		err = ctx.Err() // what was emitted is not all
	}
	return err
}

// exporter emits the events of a recovered ledger.
type exporter struct {
	*recovery
	emit   func(ledger.Event) error
	newest ledger.Slot // the highest slot of base state that anew emitted
}

func (x *exporter) run(ctx context.Context) error {
	c, head := x.seq.Chain(), x.seq.Head()
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
	_, blocks := x.seq.Snapshot()
	for _, b := range blocks {
		final := *b.Whole()
		// The newest block becomes final at the end. Base state that came after it would otherwise belong to it.
		if final.Status = ledger.Finalized; b.Block.Slot == slot {
			final.Status = ledger.Confirmed
		}
		if err := x.emit(&final); err != nil {
			return err
		}
	}
	// A first status tells the reader that statuses come.
	if err := x.emit(&ledger.SlotStatus{Slot: slot, Status: ledger.StatusConfirmed}); err != nil {
		return err
	}
	if err := x.unfinalized(); err != nil {
		return err
	}
	if err := x.emit(&ledger.SlotStatus{Slot: slot, Status: ledger.StatusFinalized}); err != nil || c.Confirmed == c.Finalized {
		return err
	}
	return x.emit(&ledger.SlotStatus{Slot: c.Confirmed.Slot(), Status: ledger.StatusConfirmed})
}

// unfinalized emits the blocks of the chain that are not final. If base state came between two of them, it emits
// the accounts of that base state as they were then: each is closed, and written again at the slot after the first of
// the two, so that the result does not depend on what the blocks alone lead to.
func (x *exporter) unfinalized() error {
	c := x.seq.Chain()
	tip, below := c.Tip, c.Finalized
	var path []*chain.Node
	for n := tip; n != below; n = n.Parent {
		path = append(path, n)
	}
	for _, n := range slices.Backward(path) {
		if err := x.between(below, n.Version-1); err != nil {
			return err
		}
		below = n
		b := *n.Block
		b.Status = ledger.Processed
		if err := x.leaveOut(n, &b); err != nil {
			return err
		}
		if err := x.emit(&b); err != nil {
			return err
		}
	}
	return x.between(tip, x.seq.Version())
}

// between emits the accounts of base state whose records come after a block of the chain and not after version v.
func (x *exporter) between(below *chain.Node, v ledger.Version) error {
	for _, r := range x.bases {
		if r.Version <= below.Version || r.Version > v {
			continue
		}
		var keys []ledger.Pubkey
		for i := range r.Base.Accounts {
			keys = append(keys, r.Base.Accounts[i].Pubkey)
		}
		for i := range r.Base.Mints {
			keys = append(keys, r.Base.Mints[i].Pubkey)
		}
		slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
		for some := range slices.Chunk(slices.Compact(keys), exportPiece) {
			if err := x.anew(below.Slot()+1, v, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveOut removes from a block the writes of accounts that the filter excludes, since the node that reads the export
// has no filter.
func (x *exporter) leaveOut(n *chain.Node, b *ledger.Block) error {
	if x.config.Dir.Filter() == nil {
		return nil
	}
	keys := make([]ledger.Pubkey, len(b.Accounts))
	for i := range b.Accounts {
		keys[i] = b.Accounts[i].Pubkey
	}
	held := make(map[ledger.Pubkey]bool)
	for _, v := range []ledger.Version{n.Version - 1, n.Version} {
		accounts, err := reader.Scatter(x.shards, keys, v, time.Now().Add(scanDeadline), (*shard.Shard).Accounts)
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
	facts, err := reader.Scatter(x.shards, mints, n.Version, time.Now().Add(scanDeadline), (*shard.Shard).Mints)
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
func (x *exporter) anew(slot ledger.Slot, v ledger.Version, keys []ledger.Pubkey) error {
	late := time.Now().Add(scanDeadline)
	accounts, err := reader.Scatter(x.shards, keys, v, late, (*shard.Shard).Accounts)
	if err != nil {
		return err
	}
	mints, err := reader.Scatter(x.shards, keys, v, late, (*shard.Shard).Mints)
	if err != nil {
		return err
	}
	closed, written := new(ledger.BaseState), new(ledger.BaseState)
	x.newest = max(x.newest, slot)
	for i, k := range keys {
		closes := ledger.AccountWrite{Pubkey: k}
		closed.Accounts = append(closed.Accounts, closes)
		if a := &accounts[i]; a.Exists() {
			written.Accounts = append(written.Accounts, a.Write())
		} else if at := max(a.Since.Slot(), x.seq.Chain().Finalized.Slot()); a.Since != 0 {
			x.newest = max(x.newest, at)
			if err := x.emit(&ledger.BaseState{Slot: at, Accounts: []ledger.AccountWrite{closes}}); err != nil {
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
	return x.emit(written)
}

// base emits all live accounts and mint facts at a version, as base state of a slot.
func (x *exporter) base(ctx context.Context, slot ledger.Slot, version ledger.Version) error {
	var failed error
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
	err := x.visitAccounts(version, func(a *ledger.Account) bool {
		piece.Accounts = append(piece.Accounts, a.Write())
		return flush(exportPiece)
	})
	if err == nil && failed == nil {
		err = x.visitMints(version, func(m *ledger.MintWrite) bool {
			m.Mint = m.Mint.Facts()
			piece.Mints = append(piece.Mints, *m)
			return flush(exportPiece)
		})
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot walk the state at slot %d: %w", slot, err)
	case failed == nil:
		flush(1)
	}
	return failed
}

// visitAccounts calls visit for every live account at a version, in pubkey order, until it
// returns false. No newer version may be folded meanwhile.
func (e *Engine) visitAccounts(v ledger.Version, visit func(*ledger.Account) bool) error {
	for _, s := range e.shards {
		for page := (shard.Page{}); !page.Done; {
			var err error
			if page, err = s.Scan(page.Next, v, time.Now().Add(scanDeadline)); err != nil {
				return err
			}
			for i := range page.Accounts {
				if !visit(&page.Accounts[i]) {
					return nil
				}
			}
		}
	}
	return nil
}

// visitMints does the same for mint facts.
func (e *Engine) visitMints(v ledger.Version, visit func(*ledger.MintWrite) bool) error {
	for _, s := range e.shards {
		var after ledger.Opt[ledger.Pubkey]
		for page := (shard.MintPage{}); !page.Done; {
			var err error
			if page, err = s.ScanMints(after, v, time.Now().Add(scanDeadline)); err != nil {
				return err
			}
			for i := range page.Mints {
				after = ledger.Some(page.Mints[i].Pubkey)
				if !visit(&page.Mints[i]) {
					return nil
				}
			}
		}
	}
	return nil
}

// scanDeadline bounds one page of a walk over all accounts or mints. It is long, since no client waits for it.
const scanDeadline = time.Minute
