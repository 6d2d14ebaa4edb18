package engine

import (
	"fmt"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/wal"
)

// errNotReady refuses questions until there is something to answer from.
var errNotReady = fmt.Errorf("the node is not ready: no block yet: %w", ledger.ErrUnavailable)

// Status says what the node is and whether it is healthy.
func (e *Engine) Status() ledger.NodeStatus {
	s := ledger.NodeStatus{Uptime: time.Since(e.started), Unhealthy: e.unhealthy()}
	if e.config.Dir != nil {
		s.NodeID = e.config.Dir.NodeID()
	}
	if e.config.Source != nil {
		s.Peers = e.config.Source.Peers()
	}
	return s
}

func (e *Engine) unhealthy() string {
	if why := e.frozen.Load(); why != nil {
		return *why
	}
	if p := e.progress.read(); p.Phase != "" {
		return fmt.Sprintf("recovering: %s, %d %%", p.Phase, p.Percent())
	}
	switch {
	case e.disk.full.Load() && e.head.Load() == nil:
		return "the disk is full: the log cannot go on until there is space"
	case e.disk.full.Load():
		return "the disk is full: ingest pauses until there is space, reads go on"
	case !e.ready.Load():
		return "starting: base state and the first block are not loaded yet"
	case e.paused.Load():
		return "ingest pauses: too much is unfinalized, and no slot status comes"
	case e.info.Live && time.Since(e.started)-time.Duration(e.lastSeen.Load()) > stallAfter:
		return fmt.Sprintf("the source has shown nothing for more than %v", stallAfter)
	}
	return ""
}

// Progress says how far recovery is.
func (e *Engine) Progress() Progress { return e.progress.read() }

// Stats are the engine's figures for operators.
type Stats struct {
	Blocks, Updates, Rollbacks, Duplicates, Orphans, Dead, Gaps, UnknownStatuses uint64

	Shards   []ShardStats
	Log      wal.Stats
	Snapshot SnapshotStats
	Recovery time.Duration // how long the start took to recover; 0 where nothing is kept
	// DiskPauses is how often ingest had to wait for space.
	DiskPauses uint64
}

// SnapshotStats are the figures of snapshots.
type SnapshotStats struct {
	Slot     ledger.Slot   // of the newest
	Taken    time.Time     // when its state was fixed; zero before the first
	Bytes    int64         // of the newest
	Duration time.Duration // the newest took
	Count    uint64        // taken by this process
	Failures uint64        // not taken because something failed
	Damaged  uint64        // found damaged at the start, and passed over
}

// ShardStats are the figures of one shard.
type ShardStats struct {
	MailboxDepth                                        int
	Accounts, TokenAccounts, Transactions, OverlayCells int64
}

// Stats returns the figures as they stand now.
func (e *Engine) Stats() Stats {
	t := &e.tally
	s := Stats{
		Blocks: t.blocks.Load(), Updates: e.seq.updates.Load(), Rollbacks: t.rollbacks.Load(),
		Duplicates: t.duplicates.Load(), Orphans: t.orphans.Load(), Dead: t.dead.Load(),
		Gaps: t.gaps.Load(), UnknownStatuses: t.unknownStatuses.Load(),
	}
	s.Log, s.Recovery, s.DiskPauses = e.log.stats(), time.Duration(e.recoveryTook.Load()), e.disk.pauses.Load()
	shots := &e.snapshots.stats
	s.Snapshot = SnapshotStats{
		Slot: ledger.Slot(shots.slot.Load()), Bytes: shots.bytes.Load(), Duration: time.Duration(shots.nanoseconds.Load()),
		Count: uint64(shots.count.Load()), Failures: uint64(shots.failures.Load()), Damaged: uint64(shots.damaged.Load()),
	}
	if taken := shots.taken.Load(); taken != 0 {
		s.Snapshot.Taken = time.Unix(0, taken)
	}
	for _, sh := range e.shards {
		c := sh.Counters()
		s.Shards = append(s.Shards, ShardStats{
			MailboxDepth: sh.MailboxDepth(), Accounts: c.Accounts.Load(), TokenAccounts: c.TokenAccounts.Load(),
			Transactions: c.Transactions.Load(), OverlayCells: c.OverlayCells.Load(),
		})
	}
	return s
}
