package engine

import (
	"fmt"
	"strings"
	"time"

	"ledgerd/engine/fill"
	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/wal"
)

// joining is the phase of Progress in which Config.Join runs.
const joining = "joining the cluster"

// stallAfter is how long a live source may lead to no block before health says so.
const stallAfter = 10 * time.Second

// Status returns what the node is and whether it is healthy.
func (e *Engine) Status() ledger.NodeStatus {
	s := ledger.NodeStatus{Uptime: time.Since(e.started), Unhealthy: e.halt()}
	if s.Unhealthy == "" {
		s.Unhealthy = e.lag()
		s.Lags = s.Unhealthy != ""
	}
	if lost := e.lostHistory(); len(lost) > 0 {
		s.Degraded = "history files cannot be read, or are damaged, and their blocks may not be indexed: " + strings.Join(lost, ", ")
	}
	_, s.NotReady = e.board.Answerable()
	s.NodeID = e.config.Dir.NodeID()
	if source, follows := e.config.Source.(ledger.Follower); follows {
		s.Peers = source.Peers()
	}
	return s
}

// halt returns why the node applies no blocks, "" while it applies new ones.
func (e *Engine) halt() string {
	if why := e.FenceReason(); why != "" {
		return why
	}
	if why := e.writer.Stopped(); why != "" {
		return why
	}
	if p := e.progress.Load(); p.Phase == joining && p.Total == 0 {
		return "starting: " + joining
	} else if p.Phase != "" {
		return fmt.Sprintf("recovering: %s, %d %%", p.Phase, p.Percent())
	}
	switch shortage, resigned := e.writer.Shortage(); {
	case resigned:
		return shortage + ": another node may write the shared log, and this one begins anew once that has passed; reads go on"
	case shortage != "" && e.Head() == nil:
		return shortage + ": the log cannot go on until that has passed"
	case shortage != "":
		return shortage + ": ingest pauses until that has passed, reads go on"
	case !e.board.Ready.Load() && !e.info.Load().Live:
		if e.newest() != "" { // of an import
			return e.sinceStart()
		}
		return "starting: base state and the first block are not loaded yet"
	case e.writer.Paused():
		return "ingest pauses: too much is unfinalized, and no slot status comes"
	}
	return ""
}

// lag returns why a node that applies new blocks is behind, "" while it is not.
func (e *Engine) lag() string {
	switch lag := e.writer.Lag(); {
	case lag != "":
		return lag
	case e.info.Load().Live:
		return e.standstill()
	}
	return ""
}

// standstill returns why a live source makes no progress, "" while it does. Only a block that
// becomes visible is progress: a duplicate is not, nor a block whose parent is
// missing. The time since then decides, not the number of slots.
func (e *Engine) standstill() string {
	switch last := e.board.LastBlock(); {
	case last.IsZero():
		return e.sinceStart() + ": " + e.trouble()
	case time.Since(last) <= stallAfter:
		return ""
	}
	return fmt.Sprintf("no block for more than %v%s: %s", stallAfter, e.newest(), e.trouble())
}

// sinceStart returns the text for a node that has had no block since its start.
func (e *Engine) sinceStart() string {
	return "starting: no block has come since the start" + e.newest()
}

// newest returns a clause that names the state which reads are answered from, "" if there is none.
func (e *Engine) newest() string {
	switch h := e.Head(); {
	case h == nil || !h.HasSlot():
		return ""
	case h.Imported:
		return fmt.Sprintf(", reads are answered from the import of slot %d", h.Tip(ledger.Processed).Slot)
	default:
		return fmt.Sprintf(", the newest is of slot %d", h.Tip(ledger.Processed).Slot)
	}
}

// trouble returns the best known reason why a live source makes no progress.
func (e *Engine) trouble() string {
	if !e.writer.Writes() {
		return "the shared log holds none that is newer"
	}
	source, follows := e.config.Source.(ledger.Follower)
	if follows {
		if why := source.Trouble(); why != "" {
			return why
		}
	}
	switch {
	case e.writer.SeenWithin(stallAfter):
		return "blocks come, but their parents are missing, or the disk does not keep up"
	case follows:
		return "the source is connected, and nothing comes"
	}
	return "the source shows nothing"
}

// DiskFailure returns the disk error that stopped ingest until a restart, nil if there is none. A full disk is not a
// failure. Run goes on after it, for reads, and does not return it.
func (e *Engine) DiskFailure() error { return e.writer.DiskFailure() }

// Progress returns how far recovery is.
func (e *Engine) Progress() Progress { return e.progress.Load() }

// lostHistory returns the names of the history files that cannot be read or are damaged.
func (e *Engine) lostHistory() []string {
	lost := e.Archive().Stats().Damaged
	if store := e.store.Load(); store != nil {
		lost = append(lost, store.Lost()...)
	}
	return lost
}

// Stats are the engine's figures for operators.
type Stats struct {
	sequencer.Counters

	Transactions int // held, including those of blocks that left the chain and are not yet dropped
	// What is in memory of the ledger: accounts and mints, blocks with their transactions, and where on disk older ones are.
	AccountBytes, TransactionBytes, HistoryMemoryBytes int64

	Shards       []ShardStats
	Log          wal.Stats
	Snapshot     ingest.SnapshotStats
	LostHistory  int           // history files that are damaged
	HistoryBytes int64         // of the files of the archive
	HistoryFrom  ledger.Slot   // the oldest slot from which on all blocks are held, in memory or in the archive
	Recovery     time.Duration // how long recovery took
	// DiskPauses is how often ingest paused because of a full disk.
	DiskPauses uint64
	// MinFreeBytes is how much of the disk must be free so that ingest does not pause.
	MinFreeBytes uint64
	Fill         fill.Stats
}

// ShardStats are the figures of one shard.
type ShardStats struct {
	MailboxDepth                          int
	Accounts, TokenAccounts, OverlayCells int64
}

// accounts returns how many accounts are held.
func (e *Engine) accounts() (n int64) {
	for _, sh := range e.shards {
		n += sh.Counters().Accounts.Load()
	}
	return n
}

// Stats returns the current figures.
func (e *Engine) Stats() Stats {
	history := e.Archive().Stats()
	s := Stats{
		Counters: e.seq.Counters(), Transactions: e.stored.Len(), TransactionBytes: int64(e.stored.SizeBytes()), Snapshot: e.writer.Snapshots(),
		LostHistory: len(e.lostHistory()), HistoryBytes: history.Bytes, HistoryMemoryBytes: history.MemoryBytes,
		Recovery: time.Duration(e.recoveryTook.Load()), DiskPauses: e.writer.DiskPauses(), MinFreeBytes: e.writer.MinFreeBytes, Fill: e.fill.Stats(),
	}
	if h := e.Head(); h != nil {
		s.HistoryFrom = e.WholeFrom(ledger.View{Head: h})
	}
	if l := e.log.Load(); l != nil {
		s.Log = l.Stats()
	}
	for _, sh := range e.shards {
		c := sh.Counters()
		s.AccountBytes += c.BaseBytes.Load() + c.OverlayBytes.Load()
		s.Shards = append(s.Shards, ShardStats{
			MailboxDepth: sh.MailboxDepth(), Accounts: c.Accounts.Load(), TokenAccounts: c.TokenAccounts.Load(),
			OverlayCells: c.OverlayCells.Load(),
		})
	}
	return s
}
