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

// prefetch is where the next keys of a block are.
type prefetch struct {
	keys  []ledger.Pubkey // all different
	found []location      // of the keys that are not taken
	sink  uint64          // the sum of what was read to prefetch it, so that the reads are not optimized away

	bufferKeys  [sliceKeys]ledger.Pubkey // copies, because a pointer would keep a whole block reachable
	bufferFound [sliceKeys]location
	missing     [sliceKeys]*ledger.Pubkey // the keys that are not in the overlay
	records     [sliceKeys]arena.Ref      // of these
}

// take returns where the next key is. There must be one.
func (a *prefetch) take() (l location) {
	l, a.found = a.found[0], a.found[1:]
	return l
}

// gather sets the keys of a to those of the next writes.
func (a *prefetch) gather(writes []ledger.AccountWrite, todo []uint64) {
	a.keys = a.bufferKeys[:0]
	for _, w := range todo[:min(len(todo), sliceKeys)] {
		key := &writes[w].Pubkey
		if n := len(a.keys); n == 0 || *key != a.keys[n-1] {
			a.keys = append(a.keys, *key)
		}
	}
}

// findAll is find for all keys of a. They may be written in their order: writing one leaves the locations of the others valid.
func (t *accounts) findAll(a *prefetch) {
	a.found = a.bufferFound[:len(a.keys)]
	t.overlay.findAll(a)
	missing := a.missing[:0]
	for i := range a.keys {
		if l := &a.found[i]; l.head == 0 {
			missing = append(missing, &a.keys[i])
		} else if c := t.overlay.cells.at(l.head); c.token != 0 {
			a.sink += t.overlay.tokens.at(c.token).Amount
		}
	}
	a.sink += t.base.FindAll(missing, a.records[:])
	n := 0
	for i := range a.found {
		if l := &a.found[i]; l.head == 0 {
			l.base = a.records[n]
			n++
		}
	}
}

// findAll finds the newest values of all keys of a.
func (o *versions) findAll(a *prefetch) {
	sum := uint64(0) // in a register, so that no load waits for the one before
	for i := range a.keys {
		hash := arena.HashOf(&a.keys[i])
		a.found[i] = location{hash: hash}
		if part := o.heads.Part(hash); part.Used > 0 {
			at, _ := part.First(hash)
			sum += part.Entries[at]
		}
	}
	for i := range a.found {
		l := &a.found[i]
		if l.head = o.find(l.hash, nil); l.head != 0 {
			c := o.cells.at(l.head) // of this key or another one with its hash
			sum += uint64(c.key[0]) + c.term[0] + uint64(c.version) + uint64(c.depth)
		}
	}
	for i := range a.keys {
		if l := &a.found[i]; l.head != 0 && o.cells.at(l.head).key != a.keys[i] {
			l.head = o.find(l.hash, &a.keys[i])
		}
	}
	a.sink += sum
}
