package engine

import (
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
)

// batch is the unit of a commit: records that become durable and then visible together, with the state of the chain and
// of the retention after the last of them. Nothing that is applied later changes it.
type batch struct {
	records    []*ledger.Record // none where the events led to nothing
	version    ledger.Version   // the newest up to and with them
	seq        ledger.Seq       // likewise
	slot       ledger.Slot      // of the chain's tip
	head       *ledger.Head
	final      ledger.Opt[ledger.Tip] // the finalized tip, where its status is no later record
	pruned     []*txstore.Block       // what the head does not hold any more
	receivedAt time.Time              // when the first of its events was taken from the source; zero: there is none
	shared     bool                   // it is in the shared log
	shown      bool                   // it is durable and published

	root     ledger.Opt[ledger.Hash] // of the ledger, where this process saw it
	statuses bool                    // the source spoke of finality
}

// seal waits for the shards and makes a batch of everything that is staged.
func (s *sequencer) seal() (*batch, error) {
	if err := s.finish(0); err != nil {
		return nil, err
	}
	b := &batch{
		records: s.staged, version: s.version, seq: s.lastSeq, slot: s.chain.TipSlot(),
		head: s.head(), root: s.rootHash, statuses: s.statusSeen,
	}
	s.staged = nil
	// A head that is never published prunes nothing, nor does a replay before the status that finalized its first block.
	if !b.head.HasBlock || len(b.records) == 0 || s.chain.Finalized.FinalizedBy > s.version {
		return b, nil
	}
	b.pruned = s.retained.prune(s.retention, b.head.Tips[ledger.Finalized].Slot, b.head.Tips[ledger.Processed].Slot)
	b.head.Floor = s.retained.floor
	b.final = ledger.Some(b.head.Tips[ledger.Finalized])
	return b, nil
}

// head describes what is visible once everything applied is durable. The shards must be done with it.
func (s *sequencer) head() *ledger.Head {
	h := &ledger.Head{StateHash: s.hash, Root: s.applier.root, Floor: s.retained.floor, Chain: s.retained.chain(), Published: time.Now()}
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
