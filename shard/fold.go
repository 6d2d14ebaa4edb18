package shard

import "ledgerd/engine/ledger"

// fold moves everything up to a version into the base and forgets what retention gave up.
type fold struct {
	to ledger.Version
	// pruned are blocks below the retention floor; every shard drops its share of them.
	pruned []*HeldBlock
	// tombstonesBelow is the slot below which closed accounts are forgotten wholly.
	tombstonesBelow ledger.Slot

	started bool
}

func (j *fold) step(s *state) (more bool) {
	if !j.started {
		j.started = true
		s.folded = max(s.folded, j.to)
		for len(s.bases) > 0 && s.bases[0].version <= j.to {
			s.bases = s.bases[1:]
		}
	}
	return s.accounts.fold(j.to, sliceKeys, s.settleAccount) ||
		s.mints.fold(j.to, sliceKeys) ||
		s.transactions.fold(j.to, sliceKeys) ||
		s.blocks.fold(j.to, sliceKeys) ||
		j.prune(s)
}

// settleAccount queues a tombstone for its end.
func (s *state) settleAccount(now *ledger.Account) {
	if !now.Exists() {
		s.tombstones.Set(tombstone{now.Since.Slot(), now.Pubkey})
	}
}

// prune drops one block's share at a time, then expired tombstones.
func (j *fold) prune(s *state) (more bool) {
	if len(j.pruned) > 0 {
		b := j.pruned[0]
		j.pruned = j.pruned[1:]
		if OfSlot(b.Block.Slot, s.shards) == s.self {
			s.blocks.putBase(b, nil)
		}
		for i := range b.packed.records {
			t := &b.packed.records[i]
			if !s.owns(t.signature.Prefix()) {
				continue
			}
			// The same signature may have been held again by a later block.
			if held := s.transactions.at(t, s.folded); held != nil && held.of.Block.Slot == b.Block.Slot {
				s.transactions.putBase(t, nil)
			}
		}
		return true
	}
	for range sliceKeys {
		dead, held := s.tombstones.Min()
		if !held || dead.slot >= j.tombstonesBelow {
			return false
		}
		s.tombstones.PopMin()
		// Only this very tombstone: the account may have been opened again.
		if s.accounts.base.closedAt(&dead.key, dead.slot) {
			s.accounts.forget(&dead.key)
		}
	}
	return true
}
