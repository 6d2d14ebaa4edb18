package shard

import "ledgerd/engine/ledger"

// fold moves everything up to a version into the base and forgets old tombstones.
type fold struct {
	to ledger.Version
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
		j.forgetTombstones(s)
}

// settleAccount queues a tombstone for its end.
func (s *state) settleAccount(now *ledger.Account) {
	if !now.Exists() {
		s.tombstones.Set(tombstone{now.Since.Slot(), now.Pubkey})
	}
}

// forgetTombstones removes closed accounts whose time is over.
func (j *fold) forgetTombstones(s *state) (more bool) {
	for range sliceKeys {
		dead, held := s.tombstones.Min()
		if !held || dead.slot >= j.tombstonesBelow {
			return false
		}
		s.tombstones.PopMin()
		// Only this very tombstone: the account may have been opened again.
		if s.accounts.base.ClosedAt(&dead.key, dead.slot) {
			s.accounts.forget(&dead.key)
		}
	}
	return true
}
