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
	Records []*ledger.Record       // none where the events led to nothing
	Version ledger.Version         // the newest up to and with them
	Seq     ledger.Seq             // likewise
	Slot    ledger.Slot            // of the chain's tip
	Head    *ledger.Head           // Published is the time of Seal until the caller sets it
	Final   ledger.Opt[ledger.Tip] // the finalized tip, where its status is no later record

	Root     ledger.Opt[ledger.Hash] // the first block's hash, if this process applied it
	Statuses bool                    // the source emitted a status

	pruned []*txstore.Block // what the head does not hold any more
}

// Seal waits for the shards and makes a batch of everything that is staged.
func (s *Sequencer) Seal() (*Batch, error) {
	if err := s.finish(0); err != nil {
		return nil, err
	}
	b := &Batch{
		Records: s.staged, Version: s.version, Seq: s.lastSeq, Slot: s.chain.TipSlot(),
		Head: s.Head(), Root: s.rootHash, Statuses: s.statusSeen,
	}
	s.staged = nil
	// A head that is never published prunes nothing, nor does a replay before the status that finalized its first block.
	if !b.Head.HasBlock || len(b.Records) == 0 || s.chain.Finalized.FinalizedBy > s.version {
		return b, nil
	}
	b.pruned = s.retained.prune(s.retention, b.Head.Tips[ledger.Finalized].Slot, b.Head.Tips[ledger.Processed].Slot)
	b.Head.Floor = s.retained.floor
	b.Final = ledger.Some(b.Head.Tips[ledger.Finalized])
	return b, nil
}

// Head describes what is visible once everything applied is durable. The shards must be done with it.
func (s *Sequencer) Head() *ledger.Head {
	h := &ledger.Head{StateHash: s.hash, Root: s.rootSlot, Floor: s.retained.floor, Chain: s.retained.chain(), Published: time.Now()}
	switch tip := s.chain.Tip; {
	case tip == nil:
		for i := range h.Tips {
			h.Tips[i] = ledger.Tip{Version: s.version, Slot: s.baseSlot}
		}
		return h
	case tip.Base:
		// Base state that came since is no block either, whatever slot it names.
		h.Imported = true
		for i := range h.Tips {
			h.Tips[i] = ledger.Tip{Version: s.version, Slot: tip.Slot(), Hash: tip.Block.Blockhash}
		}
		return h
	}
	h.HasBlock = true
	for i, n := range []*chain.Node{s.chain.Tip, s.chain.Confirmed, s.chain.Finalized} {
		h.Tips[i] = ledger.Tip{Version: n.Version, Slot: n.Slot(), Hash: n.Block.Blockhash, Seq: n.Seq, Time: n.Block.Time}
	}
	if n := s.chain.Confirmed; n.ConfirmedAgain > n.Version {
		h.Tips[ledger.Confirmed].Version, h.Tips[ledger.Confirmed].Seq = n.ConfirmedAgain, n.ConfirmedAgainSeq
	}
	// A rollback or base state may lie above the tip's own record.
	h.Tips[ledger.Processed].Version, h.Tips[ledger.Processed].Seq = s.version, s.lastSeq
	return h
}
