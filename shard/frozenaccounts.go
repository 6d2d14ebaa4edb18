package shard

import (
	"cmp"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// seenAt is the place of a value among those of its key.
type seenAt struct {
	prefix uint64
	at     position
}

// newestOf returns where the newest value of every key is at version v, in key order.
func (o *versions) newestOf(v ledger.Version) []seenAt {
	all := make([]seenAt, o.upTo(v))
	for i := range all {
		at := o.written.nth(i)
		all[i] = seenAt{o.written.at(at).key.Prefix(), at}
	}
	key := func(s seenAt) *ledger.Pubkey { return &o.written.at(s.at).key }
	slices.SortFunc(all, func(a, b seenAt) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if c := key(a).Compare(key(b)); c != 0 {
			return c
		}
		return cmp.Compare(b.at-o.written.oldest, a.at-o.written.oldest) // the newest first
	})
	return slices.CompactFunc(all, func(a, b seenAt) bool { return a.prefix == b.prefix && *key(a) == *key(b) })
}

// ascendFrozen calls visit, in key order, for every account of both layers at version v, until it returns
// false. An account is good until visit returns.
func ascendFrozen(base *packed.Frozen, over *versions, v ledger.Version, visit func(*ledger.Account) bool) {
	var a ledger.Account
	brief := packed.Slab{Reused: true}
	left, stopped := over.newestOf(v), false
	// see visits what the overlay has next.
	see := func() {
		w := over.written.at(left[0].at)
		if left = left[1:]; !w.absent {
			over.unpack(w, &a)
			stopped = !visit(&a)
		}
	}
	base.Ascend(func(key *ledger.Pubkey, r arena.Ref) bool {
		prefix := key.Prefix()
		for len(left) > 0 && left[0].prefix <= prefix && !stopped {
			order := -1
			if left[0].prefix == prefix {
				order = over.written.at(left[0].at).key.Compare(key)
			}
			if order > 0 {
				break
			}
			if see(); order == 0 {
				return !stopped
			}
		}
		if !stopped {
			base.Unpack(r, &a, &brief)
			stopped = !visit(&a)
		}
		return !stopped
	})
	for len(left) > 0 && !stopped {
		see()
	}
}
