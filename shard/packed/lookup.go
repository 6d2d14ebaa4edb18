package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Lookup is a key and the record of its account, 0 if there is none.
type Lookup struct {
	Key *ledger.Pubkey
	Ref arena.Ref
}

// FindAll looks many keys up at once: all of them one step and then all of them the next, so that the processor waits
// for memory once and not for each. It prefetches what is read of an account then. What it returns means
// nothing and keeps the loads alive.
func (b *Base) FindAll(all []Lookup) (prefetched uint64) {
	for i := range all {
		f := &all[i]
		if l := b.byKey.first(f.Key.Prefix()); l.number() == f.Key.Prefix() {
			f.Ref = l.ref // if it has the key
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
			f.Ref = b.Get(f.Key) // two keys with one beginning
		} else if p.meta&flagToken != 0 {
			prefetched += b.store.holdings.At(p.more).amount
		}
	}
	return prefetched
}
