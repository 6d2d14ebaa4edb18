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

// prefetch is where the next writes of a block find their keys.
type prefetch struct {
	found []location
	room  [sliceKeys]location // for found
	read  uint64              // the sum of what was read only to have it in the caches, so that the reads are not optimized away
}

// find looks up the keys of the next writes of todo. They may be written in their order: writing one leaves the locations of the
// other keys valid.
func (f *prefetch) find(t *accounts, writes []ledger.AccountWrite, todo []uint64) {
	f.found = f.room[:min(len(todo), len(f.room))]
	key := func(i int) *ledger.Pubkey { return &writes[todo[i]].Pubkey }
	read := uint64(0) // in a register, so that no load waits for the one before
	for i := range f.found {
		hash := arena.HashOf(key(i))
		f.found[i] = location{hash: hash}
		read += t.overlay.heads.Load(hash)
	}
	for i := range f.found { // of this key or of another one with its hash or prefix
		l := &f.found[i]
		if l.head = t.overlay.find(l.hash, nil); l.head == 0 {
			l.base = t.base.Any(key(i))
		}
	}
	for i := range f.found {
		l := &f.found[i]
		if is := t.keyAt(*l); is != nil && *is != *key(i) {
			*l = t.at(key(i), newest)
		}
		read += t.load(*l)
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

// load reads the value at l into the caches of the processor. What it returns means nothing.
func (t *accounts) load(l location) (read uint64) {
	if l.head == 0 {
		return t.base.Load(l.base)
	}
	c := t.overlay.cells.at(l.head)
	if c.token != 0 {
		read = t.overlay.tokens.at(c.token).Amount
	}
	return read + c.term[0] + uint64(c.version) + uint64(c.depth) // of each cache line of the cell
}
