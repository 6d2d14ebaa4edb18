package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Lookup is a key and, as the result of FindAll, the record of its account, 0 if there is none.
type Lookup struct {
	Key *ledger.Pubkey
	Ref arena.Ref
}

// FindAll looks up many keys at once: one step for all keys, then the next step for all keys, so that cache
// misses of different keys overlap. It also prefetches the holdings of token accounts. The caller must use the
// result, which has no meaning, so that the loads are not optimized away.
func (b *Base) FindAll(all []Lookup) (prefetched uint64) {
	for i := range all {
		f := &all[i]
		if l := b.byKey.first(f.Key.Prefix()); l.number() == f.Key.Prefix() {
			f.Ref = l.ref // of this key or another one with its prefix
		}
	}
	for i := range all {
		if r := all[i].Ref; r != 0 {
			p := b.store.records.At(r)
			prefetched += uint64(p.key[0]) + uint64(p.more)
		}
	}
	for i := range all {
		f := &all[i]
		if f.Ref == 0 {
			continue
		}
		p := b.store.records.At(f.Ref)
		if p.key != *f.Key {
			f.Ref = b.Get(f.Key) // several keys have this prefix
		} else if p.meta&flagToken != 0 {
			prefetched += b.store.holdings.At(p.more).amount
		}
	}
	return prefetched
}
