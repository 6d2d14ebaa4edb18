package shard

import "ledgerd/engine/ledger"

// fold moves everything up to a version into the base and forgets what retention gave up.
type fold struct {
	to ledger.Version
	// pruned are blocks below the retention floor; every shard drops its share of them.
	pruned []*ledger.Block
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
		s.mints.fold(j.to, sliceKeys, nil) ||
		s.transactions.fold(j.to, sliceKeys, nil) ||
		s.blocks.fold(j.to, sliceKeys, nil) ||
		j.prune(s)
}

// settleAccount removes index entries that only dropped values supported, and queues
// tombstones for their end.
func (s *state) settleAccount(now *ledger.Account, dropped []*ledger.Account) {
	for _, d := range dropped {
		s.unindex(s.programs, byProgram, now, d)
		s.unindex(s.holders, byWallet, now, d)
	}
	if now != nil && !now.Exists() {
		s.tombstones = append(s.tombstones, tombstone{now.Since.Slot(), now})
	}
}

// unindex removes the entry of a dropped value unless the base or a newer version of the
// account still supports it.
func (s *state) unindex(x *index, of grouping, now, dropped *ledger.Account) {
	group, ok := of(dropped)
	if !ok {
		return
	}
	supports := func(a *ledger.Account) bool {
		g, ok := of(a)
		return ok && g == group
	}
	if now != nil && supports(now) {
		return
	}
	supported := false
	s.accounts.versions(dropped, func(a *ledger.Account) bool {
		supported = supports(a)
		return !supported
	})
	if !supported {
		x.remove(group, dropped.Pubkey)
	}
}

// prune drops one block's share at a time, then expired tombstones.
func (j *fold) prune(s *state) (more bool) {
	if len(j.pruned) > 0 {
		b := j.pruned[0]
		j.pruned = j.pruned[1:]
		if OfSlot(b.Slot, s.shards) == s.self {
			s.blocks.putBase(&HeldBlock{Block: b}, nil)
		}
		for i := range b.Transactions {
			t := &b.Transactions[i]
			if !s.owns(t.Signature.Prefix()) {
				continue
			}
			// The same signature may have been held again by a later block.
			if held := s.transactions.at(t, s.folded); held != nil && held.Slot == b.Slot {
				s.transactions.putBase(t, nil)
			}
		}
		return true
	}
	for n := 0; len(s.tombstones) > 0 && s.tombstones[0].slot < j.tombstonesBelow; n++ {
		if n == sliceKeys {
			return true
		}
		// Only this very tombstone: the account may have been opened again.
		dead := s.tombstones[0].account
		s.tombstones[0] = tombstone{}
		s.tombstones = s.tombstones[1:]
		if e, ok := s.accounts.base.Get(entry[ledger.Account]{dead.Pubkey.Prefix(), dead}); ok && e.value == dead {
			s.accounts.putBase(dead, nil)
		}
	}
	return false
}
