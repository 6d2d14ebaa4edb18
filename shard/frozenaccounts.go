package shard

import (
	"cmp"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// keyPosition is the position of a value and the prefix of its key.
type keyPosition struct {
	prefix uint64
	at     position
}

// newestOf returns, in key order, the newest value up to version v of every key.
func (o *versions) newestOf(v ledger.Version) []keyPosition {
	all := make([]keyPosition, o.upTo(v))
	for i := range all {
		at := o.written.nth(i)
		all[i] = keyPosition{o.written.at(at).key.Prefix(), at}
	}
	key := func(s keyPosition) *ledger.Pubkey { return &o.written.at(s.at).key }
	slices.SortFunc(all, func(a, b keyPosition) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if c := key(a).Compare(key(b)); c != 0 {
			return c
		}
		return cmp.Compare(b.at-o.written.oldest, a.at-o.written.oldest) // the newest first
	})
	return slices.CompactFunc(all, func(a, b keyPosition) bool { return a.prefix == b.prefix && *key(a) == *key(b) })
}

// ascendFrozen calls visit, in key order, for every account of both layers at version v, until it returns
// false. The account passed to visit is valid until visit returns.
func ascendFrozen(base *packed.Frozen, over *versions, v ledger.Version, visit func(*ledger.Account) bool) {
	var a ledger.Account
	reusedSlab := packed.Slab{Reused: true}
	left, stopped := over.newestOf(v), false
	// visitNext visits the next value of the overlay.
	visitNext := func() {
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
			if visitNext(); order == 0 {
				return !stopped
			}
		}
		if !stopped {
			base.Unpack(r, &a, &reusedSlab)
			stopped = !visit(&a)
		}
		return !stopped
	})
	for len(left) > 0 && !stopped {
		visitNext()
	}
}
