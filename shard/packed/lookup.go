package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// FindAll sets found to the records of the accounts of keys, 0 for none. It does one step for all keys, then the next step for
// all keys, so that cache misses of different keys overlap. It also prefetches the holdings of token accounts. The caller
// must use the result, which has no meaning, so that the loads are not optimized away.
func (b *Base) FindAll(keys []*ledger.Pubkey, found []arena.Ref) (prefetched uint64) {
	for i, key := range keys {
		found[i] = b.byKey.any(key.Prefix()) // of this key or another one with its prefix
	}
	for _, r := range found[:len(keys)] {
		if r != 0 {
			p := b.store.records.At(r)
			prefetched += uint64(p.key[0]) + uint64(p.more)
		}
	}
	for i, key := range keys {
		if found[i] == 0 {
			continue
		}
		p := b.store.records.At(found[i])
		if p.key != *key {
			found[i] = b.Get(key) // several keys have this prefix
		} else if p.meta&flagToken != 0 {
			prefetched += b.store.holdings.At(p.more).amount
		}
	}
	return prefetched
}
