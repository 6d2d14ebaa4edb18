package shard

import "ledgerd/engine/ledger"

// fold moves all values up to a version into the base and drops old tombstones.
type fold struct {
	to              ledger.Version
	tombstonesBelow ledger.Slot // tombstones of older slots are dropped

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
	return s.accounts.fold(j.to, sliceKeys, s.addTombstone) ||
		s.mints.fold(j.to, sliceKeys) ||
		j.forgetTombstones(s)
}

// addTombstone adds an account that was folded to the tombstones if it is closed.
func (s *state) addTombstone(now *ledger.Account) {
	if !now.Exists() {
		s.tombstones.Set(tombstone{now.Since.Slot(), now.Pubkey})
	}
}

// forgetTombstones drops tombstones below the slot of the fold, at most sliceKeys of them.
func (j *fold) forgetTombstones(s *state) (more bool) {
	for range sliceKeys {
		dead, held := s.tombstones.Min()
		if !held || dead.slot >= j.tombstonesBelow {
			return false
		}
		s.tombstones.PopMin()
		// The account may have been opened, or closed again, since.
		if s.accounts.base.ClosedAt(&dead.key, dead.slot) {
			s.accounts.forget(&dead.key)
		}
	}
	return true
}
