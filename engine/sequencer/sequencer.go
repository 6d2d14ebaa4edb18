package sequencer

import (
	"log/slog"
	"math"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/shard"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// Config is what a sequencer needs.
type Config struct {
	Shards    []*shard.Shard // they run from the first event or record on
	Stored    *txstore.Store // the transactions of the retained blocks, and those of undone ones until they are folded
	Retention Retention
	FoldAfter time.Duration // for how long a version stays readable after a newer one is finalized: longer than a query takes
	Info      ledger.SourceInfo
	SkipVotes bool   // vote transactions are left out of blocks
	Filler    Filler // never nil; a nil *fill.Filler does nothing
	Logger    *slog.Logger
}

// Filler is told what happens to the chain, in order, so that it can judge whether an account that it fetched is up to date.
type Filler interface {
	Begin(slot ledger.Slot) // the state after the block at slot is known, and the blocks up to it are not
	Appended(b *ledger.Block)
	RolledBack(to ledger.Slot)
}

// Directory is what a data directory says of the ledger it is bound to.
type Directory interface {
	CheckRoot(ledger.Hash) error // refuses a root that is not the directory's
	Statuses() bool              // the source emitted a status before
	SkipsVotes() bool            // blocks are held without their vote transactions
}

// Sequencer makes records and batches of events, or of the records of a log.
type Sequencer struct {
	decider
	backlog backlog
}

// New returns a sequencer without a block.
func New(c Config) *Sequencer {
	return &Sequencer{decider: decider{
		applier: applier{
			shards: c.Shards, stored: c.Stored, retention: c.Retention, folds: folds{after: c.FoldAfter},
		},
		chain: chain.New(), info: c.Info, log: c.Logger, fill: c.Filler, skipVotes: c.SkipVotes,
		checkRoot: func(ledger.Hash) error { return nil },
	}}
}

// Bind ties the sequencer to what a data directory says. It is called before the first event or record.
func (s *Sequencer) Bind(d Directory) {
	s.checkRoot, s.statusSeen = d.CheckRoot, d.Statuses()
	s.skipVotes = s.skipVotes || d.SkipsVotes()
}

// notYet is FinalizedBy of a snapshot's block until the log after the snapshot has told the version.
const notYet = ledger.Version(math.MaxUint64)

// ResumeAt sets a new sequencer to the state of a snapshot, which its shards hold, and the blocks of the snapshot. Before
// is the slot of the block below them.
func (s *Sequencer) ResumeAt(m *snapshot.Meta, blocks []*txstore.Block, before ledger.Opt[ledger.Slot]) {
	n := s.chain.Begin(m.Block)
	n.Version, n.Seq, n.StateHash = m.Version, m.Seq, m.StateHash
	if n.FinalizedBy = notYet; m.BaseOnly {
		n.Base, n.FinalizedBy = true, 0
	}
	s.chain.Tip = n
	s.fill.Begin(n.Slot())
	s.version, s.shown, s.hash = m.Version, m.Version, m.StateHash
	s.rootSlot, s.lastSeq, s.baseSlot = m.Root, m.Seq, m.BaseSlot
	s.retained = retained{floor: m.Floor, before: before}
	for _, b := range blocks {
		s.stored.Add(b)
		s.retained.push(b)
	}
}

// ResumeSource says that the source goes on after blocks that came from a log: it may show again blocks that belong to
// branches which no record tells of.
func (s *Sequencer) ResumeSource() { s.chain.Resume() }

// Handle applies one event, or keeps it back while too much is unfinalized: then only statuses can make room.
func (s *Sequencer) Handle(ev ledger.Event) error {
	status, isStatus := ev.(*ledger.SlotStatus)
	if isStatus && s.Paused() && !s.knows(status) {
		return s.backlog.add(ev) // it may be about a block that is kept back
	}
	if !isStatus && (s.Paused() || s.overflows()) {
		if !s.Paused() {
			s.log.Warn("ingest pauses: too much is unfinalized", "bytes", s.chain.UnfinalizedBytes)
		}
		return s.backlog.add(ev)
	}
	if err := s.decide(ev); err != nil {
		return err
	}
	for s.Paused() && !s.overflows() {
		if err := s.decide(s.backlog.take()); err != nil {
			return err
		}
	}
	return nil
}

// Paused reports whether events are kept back because too much is unfinalized.
func (s *Sequencer) Paused() bool { return len(s.backlog.events) > 0 }

// MayLearn reports whether Learn may be called: there is a block, and room for more.
func (s *Sequencer) MayLearn() bool { return s.chain.Tip != nil && !s.Paused() && !s.overflows() }

// Learn applies base state that the source did not show, as the next record.
func (s *Sequencer) Learn(b *ledger.BaseState) error { return s.base(b) }

// EndOfInput settles what a finite source left open: blocks that still wait, and the
// finality of a ledger whose source never spoke of it.
func (s *Sequencer) EndOfInput() error {
	if err := s.passGaps(func() bool { return s.chain.Waiting.Len() > 0 }); err != nil {
		return err
	}
	s.finalizeByDepth(0)
	if n := len(s.backlog.events); n > 0 {
		return chain.Refused("the input ended with %d events held back because too much is unfinalized", n)
	}
	return nil
}

// Chain returns the tree of blocks, for reading alone.
func (s *Sequencer) Chain() *chain.Chain { return s.chain }

// Version returns the version of the newest record.
func (s *Sequencer) Version() ledger.Version { return s.version }

// Snapshot returns what a snapshot of the newest finalized block says of itself, and the blocks it holds. The state is that
// of the shards at the version of the Meta. There must be a block, and everything applied must be visible.
func (s *Sequencer) Snapshot() (snapshot.Meta, []snapshot.HeldBlock) {
	n := s.chain.Finalized
	return snapshot.Meta{
		Version: n.Version, Slot: n.Slot(), Blockhash: n.Block.Blockhash, Seq: n.Seq, StateHash: n.StateHash,
		Block: n.Block, Root: s.rootSlot, Floor: s.retained.floor, BaseSlot: s.baseSlot,
	}, s.retained.upTo(n.Slot())
}

// Shown notes that a batch became visible: what it finalized is folded once no query reads below it.
func (s *Sequencer) Shown(b *Batch) {
	s.shown = b.Version
	if b.Head.HasBlock {
		s.folds.add(b.Head.Tips[ledger.Finalized], b.pruned, b.Head.Published)
	}
}

// AllShown reports whether everything that was applied is visible.
func (s *Sequencer) AllShown() bool { return s.shown == s.version }

// FoldDue folds what no query can be reading below any more, or anything finalized where the
// overlays hold too much.
func (s *Sequencer) FoldDue(now time.Time) {
	var cells int64
	for _, sh := range s.shards {
		cells += sh.Counters().OverlayCells.Load()
	}
	s.fold(now, cells > maxOverlayCells)
}

// FoldAll folds everything finalized at once. The caller knows that no query runs.
func (s *Sequencer) FoldAll() { s.fold(time.Now(), true) }

// NextFold returns when the next fold is due, false if none waits.
func (s *Sequencer) NextFold() (time.Time, bool) { return s.folds.next() }
