package engine

import (
	"fmt"
	"time"

	"ledgerd/engine/ledger"
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
	switch {
	case !e.ready.Load():
		return "starting: base state and the first block are not loaded yet"
	case e.paused.Load():
		return "ingest pauses: too much is unfinalized, and no slot status comes"
	case e.info.Live && time.Since(e.started)-time.Duration(e.lastSeen.Load()) > stallAfter:
		return fmt.Sprintf("the source has shown nothing for more than %v", stallAfter)
	}
	return ""
}

// Stats are the engine's figures for operators.
type Stats struct {
	Blocks, Updates, Rollbacks, Duplicates, Orphans, Dead, Gaps, UnknownStatuses uint64

	Shards []ShardStats
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
	for _, sh := range e.shards {
		c := sh.Counters()
		s.Shards = append(s.Shards, ShardStats{
			MailboxDepth: sh.MailboxDepth(), Accounts: c.Accounts.Load(), TokenAccounts: c.TokenAccounts.Load(),
			Transactions: c.Transactions.Load(), OverlayCells: c.OverlayCells.Load(),
		})
	}
	return s
}
