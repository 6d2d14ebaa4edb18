package shard

import "ledgerd/engine/ledger"

// fold moves all values up to a version into the base and drops the tombstones below a horizon.
type fold struct {
	reply[struct{}] // nobody waits for it
	Point
}

// tombstone is a closed account. They are in a tree, the oldest slot first. A queue would not do: folding finds tombstones
// only nearly in the order of their slots, and one of an old slot may be folded late.
type tombstone struct {
	slot ledger.Slot // where it was closed
	key  ledger.Pubkey
}

func (t tombstone) before(u tombstone) bool {
	if t.slot != u.slot {
		return t.slot < u.slot
	}
	return t.key.Compare(&u.key) < 0
}

func (j *fold) step(s *state) (more bool) {
	s.folded = max(s.folded, j.Version)
	for len(s.bases) > 0 && s.bases[0].at.Version <= j.Version {
		s.bases = s.bases[1:]
	}
	return s.accounts.fold(j.Version, sliceKeys, s.addTombstone) ||
		s.mints.fold(j.Version, sliceKeys) ||
		j.forgetTombstones(s)
}

// addTombstone adds an account that is in the base to the tombstones if it is closed.
func (s *state) addTombstone(a *ledger.Account) {
	if !a.Exists() {
		s.tombstones.Set(tombstone{a.Since.Slot(), a.Pubkey})
	}
}

// forgetTombstones drops tombstones below the horizon of the fold, at most sliceKeys of them. No record sees them any more, so
// when a fold runs changes nothing.
func (j *fold) forgetTombstones(s *state) (more bool) {
	for range sliceKeys {
		dead, held := s.tombstones.Min()
		if !held || dead.slot >= j.Horizon {
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
