package shard

// fold moves all values up to a version into the base and drops the tombstones below a horizon.
type fold struct {
	reply[struct{}] // nobody waits for it
	Point
}

func (j *fold) step(s *state) (more bool) {
	s.folded = max(s.folded, j.Version)
	for len(s.bases) > 0 && s.bases[0].at.Version <= j.Version {
		s.bases = s.bases[1:]
	}
	return s.accounts.fold(j.Version, sliceKeys) ||
		s.mints.fold(j.Version, sliceKeys) ||
		j.forgetTombstones(s)
}

// forgetTombstones drops tombstones below the horizon of the fold, at most sliceKeys of them. No later record sees them, so
// the time at which a fold runs does not change any result.
func (j *fold) forgetTombstones(s *state) (more bool) {
	for range sliceKeys {
		r, noted := s.accounts.base.NextClosed(j.Horizon)
		if !noted {
			return false
		}
		if r != 0 {
			s.accounts.forget(r)
		}
	}
	return true
}
