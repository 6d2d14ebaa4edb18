package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// # Prefetching
//
// With millions of accounts a look-up misses the processor's caches some ten times, and each miss
// depends on the one before. So the keys of a block are looked up many at once: one step for
// all keys, then the next step for all keys. The misses of different keys overlap, which makes a write
// a tenth cheaper (BenchmarkApply).

// prefetch holds the locations of the keys that a block writes next.
type prefetch struct {
	found []location
	keys  [sliceKeys]ledger.Pubkey // of found
	room  [sliceKeys]location      // for found
	read  uint64                   // the sum of what was prefetched, so that the reads are not optimized away
}

// find looks up the keys of the next writes of todo. Writing one of these keys leaves the locations of the other keys valid.
func (f *prefetch) find(t *accounts, writes []ledger.AccountWrite, todo []uint64) {
	f.found = f.room[:min(len(todo), len(f.room))]
	keys, read := f.keys[:len(f.found)], uint64(0) // read is in a register, so that no load waits for the one before
	for i := range keys {
		keys[i] = writes[todo[i]].Pubkey
	}
	for i := range keys {
		hash := arena.HashOf(&keys[i])
		f.found[i] = location{hash: hash}
		read += t.overlay.heads.Load(hash)
	}
	for i := range f.found {
		l := &f.found[i]
		if l.head = t.overlay.find(l.hash, nil); l.head != 0 {
			c := t.overlay.cells.at(l.head) // of the key or another one with its hash
			read += uint64(c.key[0]) + c.term[0] + uint64(c.version) + uint64(c.depth)
		}
	}
	for i := range f.found {
		if l := &f.found[i]; l.head == 0 {
			l.base = t.base.Any(&keys[i]) // of the key or another one with its prefix
		}
	}
	for _, l := range f.found {
		read += t.base.Load(l.base)
	}
	for i := range f.found {
		l := &f.found[i]
		if is := t.keyAt(*l); is != nil && *is != keys[i] {
			*l = t.at(&keys[i], newest)
		}
		read += t.loadToken(*l)
	}
	f.read += read
}

// keyAt returns the key of the value at l, nil if there is none.
func (t *accounts) keyAt(l location) *ledger.Pubkey {
	switch {
	case l.head != 0:
		return &t.overlay.cells.at(l.head).key
	case l.base != 0:
		return t.base.Key(l.base)
	}
	return nil
}

// loadToken reads the token holding of the account at l into the caches of the processor. Its result means nothing.
func (t *accounts) loadToken(l location) uint64 {
	if l.head == 0 {
		return t.base.LoadHolding(l.base)
	}
	if token := t.overlay.cells.at(l.head).token; token != 0 {
		return t.overlay.tokens.at(token).Amount
	}
	return 0
}
