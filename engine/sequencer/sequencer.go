package sequencer

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/fill"
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
	// MemoryLimit is what the process may take, in bytes; 0: as much as it wants.
	MemoryLimit int64
	FoldAfter   time.Duration // for how long a version stays readable after a newer one is finalized: longer than a query takes
	Info        ledger.SourceInfo
	Filler      *fill.Filler // gets the changes of the chain, in order; nil where no account is fetched
	Logger      *slog.Logger
}

// Sequencer makes records and batches of events, or of the records of a log.
type Sequencer struct {
	config Config
	tally  ledger.Guarded[Counters]

	// What is decided.
	chain        *chain.Chain
	checkRoot    func(ledger.Hash) error // refuses a root that is not the data directory's
	skipVotes    bool                    // vote transactions are left out of blocks
	data         *ledger.DataPrograms    // the programs whose accounts are held with their data; nil: none
	backlog      []ledger.Event          // kept back while too much is unfinalized
	backlogBytes int
	makeRoom     int                     // so many of the backlog are applied even without room, as the last of them makes blocks final
	statusSeen   bool                    // the source emitted a status
	rootHash     ledger.Opt[ledger.Hash] // of the first block, if this process applied it
	// follows is set while the records come from another node. Only these show whether its source emits statuses. For the
	// own source the data directory says that.
	follows bool
	// bases are the digests of the newest base states that came after the first block. A source shows base state again after
	// a restart, and it is not learned again.
	bases   []ledger.Hash
	verdict ledger.Verdict // the answer to the next question of a stream
	ahead   ahead

	// What is applied.
	version  ledger.Version   // of the newest record
	working  []work           // records whose shards may not be done; oldest first
	lastSeq  ledger.Seq       // of the newest update of a record whose shards are done
	hash     ledger.StateHash // after that record
	staged   []*ledger.Record // records whose shards are done, in no batch yet
	shown    ledger.Version   // of the newest record that is visible
	horizon  ledger.Slot      // of the next record that writes
	baseSlot ledger.Slot      // the highest base state learned
	rootSlot ledger.Slot      // of the first block ever

	retained retained
	folds    []fold         // oldest first
	folded   ledger.Version // of the newest tip that was ever in folds
}

// New returns a sequencer without a block.
func New(c Config) *Sequencer {
	s := &Sequencer{config: c, chain: chain.New(), checkRoot: func(ledger.Hash) error { return nil }}
	s.chain.Stream = c.Info.Stream
	return s
}

// Bind ties the sequencer to what a data directory says. checkRoot returns an error for a root that is not the one of its
// ledger; statuses says that the source emitted a status before, and skipVotes that blocks are held without their vote
// transactions; data are the programs whose data is held. Bind is called before the first event or record.
func (s *Sequencer) Bind(checkRoot func(ledger.Hash) error, statuses, skipVotes bool, data *ledger.DataPrograms) {
	s.checkRoot, s.statusSeen, s.skipVotes, s.data = checkRoot, statuses, skipVotes, data
}

// ResumeAt sets a new sequencer to the state of a snapshot, which its shards hold, and the blocks of the snapshot. Before is the slot
// of the block below them, kind that of the snapshot's record.
func (s *Sequencer) ResumeAt(m *snapshot.Meta, kind ledger.RecordKind, blocks txstore.Chain, before ledger.Opt[ledger.Slot]) {
	n := s.chain.Begin(m.Block)
	s.chain.Appended(n, m.Version)
	n.Seq, n.StateHash, n.Base = m.Seq, m.StateHash, m.BaseOnly
	// Base state belongs to a block only where that is final already. A snapshot at the
	// block's own record lies before the status that makes it final.
	n.Provisional = !m.BaseOnly && kind != ledger.BaseRecord
	n.Horizon = m.Horizon
	s.horizon = cmp.Or(m.Horizon, s.config.Retention.horizon(m.Slot))
	for _, o := range m.Statuses {
		s.chain.NoteStatus(ledger.BlockID{Slot: o.Slot, Hash: o.Blockhash.Value}, o.Status)
	}
	s.bases = slices.Clone(m.Bases)
	s.config.Filler.Begin(n.Slot())
	s.version, s.shown, s.hash = m.Version, m.Version, m.StateHash
	s.rootSlot, s.lastSeq, s.baseSlot = m.Root, m.Seq, m.BaseSlot
	s.retained = retained{floor: m.Floor, before: before}
	for _, b := range blocks {
		s.retain(b)
	}
}

// ResumeSource says that the source goes on after what came from a log: it may show again blocks that belong to branches of
// which the log has no record. What builds on an import it shows for the first time.
func (s *Sequencer) ResumeSource() {
	if tip := s.chain.Tip; tip != nil && !tip.Base {
		s.chain.Resume()
	}
}

// MayLearn reports whether Learn may be called: there is a block, and room for more.
func (s *Sequencer) MayLearn() bool { return s.chain.Tip != nil && !s.Paused() && !s.overflows() }

// EndOfInput applies the gap rule to the blocks of a finite source that still wait, and finalizes the tip if the source never
// emitted a status. If events are kept back and no status is among them, which may be about another branch than the tip's, it also
// finalizes the tip before that, to make room. It returns a chain.RefusedError if events are still kept back then.
func (s *Sequencer) EndOfInput() error {
	isStatus := func(ev ledger.Event) bool { _, is := ev.(*ledger.SlotStatus); return is }
	if s.Paused() && !slices.ContainsFunc(s.backlog, isStatus) {
		s.finalizeByDepth(0)
		if err := s.applyBacklog(); err != nil {
			return err
		}
	}
	if n := len(s.backlog); n > 0 {
		return chain.Refused("the input ended with %d events held back because too much is unfinalized", n)
	}
	if err := s.passGaps(true); err != nil {
		return err
	}
	s.finalizeByDepth(0)
	return nil
}

// Chain returns the tip, the levels and the waiting blocks as they are now. The caller only reads the nodes.
func (s *Sequencer) Chain() chain.View { return s.chain.View }

// Version returns the version of the newest record.
func (s *Sequencer) Version() ledger.Version { return s.version }

// Snapshot returns what a snapshot of the newest finalized block says of itself, and the blocks it holds, oldest first. The
// state is that of the shards at the version of the Meta. There must be a block, and everything applied must be visible.
func (s *Sequencer) Snapshot() (snapshot.Meta, []snapshot.HeldBlock) {
	n := s.chain.Finalized
	return snapshot.Meta{
		Version: n.Version, Slot: n.Slot(), Blockhash: n.Block.Blockhash, Seq: n.Seq, StateHash: n.StateHash,
		Block: n.Block, Root: s.rootSlot, Floor: s.retained.floor, BaseSlot: s.baseSlot, Horizon: n.Horizon,
		Statuses: s.chain.Statuses(), Bases: slices.Clone(s.bases),
	}, s.retained.upTo(n.Slot())
}
