package sequencer

import (
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
)

// Batch is the unit of a commit: records that become durable and then visible together, with the state of the chain and
// of the retention after the last of them. Nothing that is applied later changes it.
type Batch struct {
	Records []*ledger.Record // oldest first; none where the events led to nothing
	Head    *ledger.Head     // after the records. Published is the time of Seal until the caller sets it
	// Final says that with the batch it is durable that the finalized tip of Head is final. It is false without a record or
	// a block, and in a replay before the status record of the snapshot's block.
	Final bool

	Root     ledger.Opt[ledger.Hash] // the first block's hash, if this process applied it
	Statuses bool                    // the source emitted a status, in this batch or before

	pruned  []*txstore.Block // blocks that neither this head nor a later one has
	horizon ledger.Slot      // of the record of Head's finalized tip
}

// Seal waits for the shards and makes a batch of everything that was applied since the batch before.
func (s *Sequencer) Seal() (*Batch, error) {
	if err := s.finish(0); err != nil {
		return nil, err
	}
	b := &Batch{Records: s.staged, Head: s.Head(), Root: s.rootHash, Statuses: s.statusSeen}
	s.staged = nil
	if f := s.chain.Finalized; f != nil {
		b.horizon = f.Horizon
	}
	// Only a head that is published, and whose finalized tip is known to be final, prunes.
	if b.Final = b.Head.HasBlock && len(b.Records) > 0 && !s.chain.Finalized.Provisional; b.Final {
		b.pruned = s.retained.prune(s.config.Retention, b.Head)
		b.Head.Floor, b.Head.Gaps = s.retained.floor, s.retained.gaps
	}
	return b, nil
}

// Head describes what is visible once everything applied is durable. The shards must be done with it.
func (s *Sequencer) Head() *ledger.Head {
	h := &ledger.Head{StateHash: s.hash, FinalState: s.hash, Root: s.rootSlot, Floor: s.retained.floor, Horizon: s.horizon, Chain: s.retained.blocks, Gaps: s.retained.gaps, Published: time.Now()}
	tip := s.chain.Tip
	if tip == nil || tip.Base {
		at := ledger.Tip{Version: s.version, Slot: s.baseSlot}
		if h.Imported = tip != nil; h.Imported { // base state that came since is no block either, whatever slot it names
			at.Slot, at.Hash = tip.Slot(), tip.Block.Blockhash
		}
		h.Tips = [ledger.Commitments]ledger.Tip{at, at, at}
		return h
	}
	h.HasBlock, h.FinalState = true, s.chain.Finalized.StateHash
	for i, n := range []*chain.Node{tip, s.chain.Confirmed, s.chain.Finalized} {
		h.Tips[i] = ledger.Tip{Version: n.Version, Slot: n.Slot(), Hash: n.Block.Blockhash, Seq: n.Seq, Time: n.Block.Time}
	}
	if n := s.chain.Confirmed; n.ConfirmedAgain > n.Version {
		h.Tips[ledger.Confirmed].Version, h.Tips[ledger.Confirmed].Seq = n.ConfirmedAgain, n.ConfirmedAgainSeq
	}
	// A rollback, base state or a status may lie above the tip's own record.
	h.Tips[ledger.Processed].Version, h.Tips[ledger.Processed].Seq = s.version, s.lastSeq
	return h
}
