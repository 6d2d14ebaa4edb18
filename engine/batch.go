package engine

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard/txstore"
)

// batch is what becomes durable, and then visible, at once: records, and what the chain and the
// retention were when the last of them was made. It depends on nothing that comes after.
type batch struct {
	records []*ledger.Record // none where the events led to nothing
	version ledger.Version   // the newest up to and with them
	seq     ledger.Seq       // likewise
	slot    ledger.Slot      // of the chain's tip
	head    *ledger.Head
	final   ledger.Opt[ledger.Tip] // the finalized tip, where its status is no later record
	pruned  []*txstore.Block       // what the head does not hold any more
	came    time.Time              // when the first of its events was taken from the source; zero: there is none
	shared  bool                   // it is in the shared log
	shown   bool                   // it is durable and published

	root     ledger.Opt[ledger.Hash] // of the ledger, where this process saw it
	statuses bool                    // the source spoke of finality
}

// seal waits for the shards and makes a batch of everything that is staged.
func (s *sequencer) seal() (*batch, error) {
	if err := s.finish(0); err != nil {
		return nil, err
	}
	b := &batch{
		records: s.staged, version: s.version, seq: s.applier.seq, slot: s.chain.tipSlot(),
		head: s.head(), root: s.rootHash, statuses: s.statusSeen,
	}
	s.staged = nil
	// A head that nobody is shown lets go of nothing, nor does a replay before the time when its first block was final.
	if !b.head.HasBlock || len(b.records) == 0 || s.chain.finalized.finalizedBy > s.version {
		return b, nil
	}
	b.pruned = s.held.prune(s.retention, b.head.Tips[ledger.Finalized].Slot, b.head.Tips[ledger.Processed].Slot)
	b.head.Floor = s.held.floor
	b.final = ledger.Some(b.head.Tips[ledger.Finalized])
	return b, nil
}

// head describes what is visible once everything applied is durable. The shards must be done with it.
func (s *sequencer) head() *ledger.Head {
	h := &ledger.Head{StateHash: s.hash, Root: s.applier.root, Floor: s.held.floor, Chain: s.held.chain(), Published: time.Now()}
	switch tip := s.chain.tip; {
	case tip == nil:
		for i := range h.Tips {
			h.Tips[i] = ledger.Tip{Version: s.version, Slot: s.baseSlot}
		}
		return h
	case tip.base:
		// Base state that came since is no block either, whatever slot it names.
		h.Imported = true
		for i := range h.Tips {
			h.Tips[i] = ledger.Tip{Version: s.version, Slot: tip.slot(), Hash: tip.block.Blockhash}
		}
		return h
	}
	h.HasBlock = true
	for i, n := range []*node{s.chain.tip, s.chain.confirmed, s.chain.finalized} {
		h.Tips[i] = ledger.Tip{Version: n.version, Slot: n.slot(), Hash: n.block.Blockhash, Seq: n.seq, Time: n.block.Time}
	}
	if n := s.chain.confirmed; n.again > n.version {
		h.Tips[ledger.Confirmed].Version, h.Tips[ledger.Confirmed].Seq = n.again, n.againSeq
	}
	// A rollback or base state may lie above the tip's own record.
	h.Tips[ledger.Processed].Version, h.Tips[ledger.Processed].Seq = s.version, s.applier.seq
	return h
}
