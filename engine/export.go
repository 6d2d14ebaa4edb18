package engine

import (
	"cmp"
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
	// exportBytes bounds what the data of an event takes, but for its last account, so that it can be read back.
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
	node  *Engine
	emit  func(ledger.Event) error
	bases []*ledger.Record // base state that came after the finalized block and was not emitted yet, oldest first
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
	// A first status tells the reader that statuses come.
	if err := x.emit(&ledger.SlotStatus{Slot: slot, Status: ledger.StatusFinalized}); err != nil {
		return err
	}
	if err := x.readBases(ctx); err != nil {
		return err
	}
	return x.unfinalized()
}

// base emits all live accounts and mint facts at a version, as base state of a slot.
func (x *exporter) base(ctx context.Context, slot ledger.Slot, version ledger.Version) error {
	p := pieces{emit: x.emit, piece: ledger.BaseState{Slot: slot}}
	err := x.node.visit(version, func(a *ledger.Account) bool {
		w := a.Write()
		if w.Token != nil {
			w.Token = new(*w.Token) // the event outlives the account
		}
		return p.account(w) && ctx.Err() == nil
	}, func(m *ledger.MintWrite) bool { return p.mint(*m) && ctx.Err() == nil })
	if err != nil {
		return fmt.Errorf("cannot walk the state at slot %d: %w", slot, err)
	}
	return cmp.Or(p.flush(), ctx.Err())
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

// unfinalized emits the blocks of the chain that are not final, and which of them is confirmed. A block writes what base state that came before it
// told, too: so every level shows it from the block on that did so here. What no block can write is emitted as base state of a level.
func (x *exporter) unfinalized() error {
	c := x.node.seq.Chain()
	if n := c.Finalized; n == c.Confirmed {
		if err := x.told(n, n.ConfirmedAgain, ledger.Confirmed); err != nil {
			return err
		}
	}
	var path []*chain.Node
	for n := c.Tip; n != c.Finalized; n = n.Parent {
		path = append(path, n)
	}
	for _, n := range slices.Backward(path) {
		if err := x.block(n, n == c.Confirmed); err != nil {
			return err
		}
	}
	return x.told(c.Tip, x.node.seq.Version(), ledger.Processed)
}

// block emits a block as its level shows it: a block that was confirmed again also has the base state that came until then.
func (x *exporter) block(n *chain.Node, confirmed bool) error {
	b, shown := *n.Block, n.Version
	if b.Status = ledger.Processed; confirmed {
		b.Status, shown = ledger.Confirmed, max(n.Version, n.ConfirmedAgain)
	}
	keys := appendKeys(x.keysUntil(shown), b.Accounts, b.Mints)
	var err error
	if b.Accounts, b.Mints, err = x.anew(keys, shown); err != nil {
		return err
	}
	return x.emit(&b)
}

// told emits what base state until a version led to that no block writes, as base state of a level above the newest block that was emitted.
func (x *exporter) told(newest *chain.Node, until ledger.Version, level ledger.Commitment) error {
	p := pieces{emit: x.emit, piece: ledger.BaseState{Slot: newest.Slot() + 1, Level: ledger.Some(level)}}
	for some := range slices.Chunk(x.keysUntil(until), exportPiece) {
		accounts, mints, err := x.anew(some, until)
		if err != nil {
			return err
		}
		for i := range accounts {
			p.account(accounts[i])
		}
		for i := range mints {
			p.mint(mints[i])
		}
	}
	return p.flush()
}

// keysUntil takes out the base state that came until a version and returns the keys that it names, some more than once.
func (x *exporter) keysUntil(v ledger.Version) (keys []ledger.Pubkey) {
	for ; len(x.bases) > 0 && x.bases[0].Version <= v; x.bases = x.bases[1:] {
		keys = appendKeys(keys, x.bases[0].Base.Accounts, x.bases[0].Base.Mints)
	}
	return keys
}

// appendKeys appends the keys that are written.
func appendKeys(keys []ledger.Pubkey, accounts []ledger.AccountWrite, mints []ledger.MintWrite) []ledger.Pubkey {
	for i := range accounts {
		keys = append(keys, accounts[i].Pubkey)
	}
	for i := range mints {
		keys = append(keys, mints[i].Pubkey)
	}
	return keys
}

// anew returns what makes accounts and mints what they are at a version, whatever they were before: each is closed, and written again if it is live.
// What a filter excludes is not live. The facts of its mints are held all the same.
func (x *exporter) anew(keys []ledger.Pubkey, v ledger.Version) (writes []ledger.AccountWrite, mints []ledger.MintWrite, err error) {
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	keys = slices.Compact(keys)
	late := time.Now().Add(scanDeadline)
	accounts, err := reader.Scatter(x.node.shards, keys, v, late, (*shard.Shard).Accounts)
	if err != nil {
		return nil, nil, err
	}
	facts, err := reader.Scatter(x.node.shards, keys, v, late, (*shard.Shard).Mints)
	if err != nil {
		return nil, nil, err
	}
	for i, key := range keys {
		writes = append(writes, ledger.AccountWrite{Pubkey: key})
		if accounts[i].Exists() {
			writes = append(writes, accounts[i].Write())
		}
		if facts[i] != nil {
			mints = append(mints, ledger.MintWrite{Pubkey: key, Mint: facts[i].Facts()})
		}
	}
	return writes, mints, nil
}

// scanDeadline bounds one question of an export. It is long, since no client waits for it.
const scanDeadline = time.Minute

// pieces emits base state in pieces of bounded size, up to the first error.
type pieces struct {
	emit  func(ledger.Event) error
	piece ledger.BaseState
	bytes int // of the data in piece
	err   error
}

// account adds a write and reports whether there was no error yet, as mint does.
func (p *pieces) account(w ledger.AccountWrite) bool {
	p.piece.Accounts = append(p.piece.Accounts, w)
	p.bytes += w.Data.SizeBytes()
	return p.flushFull()
}

func (p *pieces) mint(m ledger.MintWrite) bool {
	p.piece.Mints = append(p.piece.Mints, m)
	return p.flushFull()
}

func (p *pieces) flushFull() bool {
	if len(p.piece.Accounts)+len(p.piece.Mints) < exportPiece && p.bytes <= exportBytes {
		return true
	}
	return p.flush() == nil
}

// flush emits what was not emitted yet, and returns the first error of all.
func (p *pieces) flush() error {
	if len(p.piece.Accounts)+len(p.piece.Mints) == 0 || p.err != nil {
		return p.err
	}
	full := p.piece
	p.piece.Accounts, p.piece.Mints, p.bytes = nil, nil, 0
	p.err = p.emit(&full)
	return p.err
}
