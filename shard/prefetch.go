package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// # Prefetching
//
// With millions of accounts a look-up misses the processor's caches some ten times, and each miss
// depends on the one before. So the keys of a block are looked up many at once: one step for
// all keys, then the next step for all keys. The misses of different keys overlap, which makes a write
// a tenth cheaper (BenchmarkApply).

// prefetch is where the next keys of a block are.
type prefetch struct {
	keys  [sliceKeys]ledger.Pubkey // all different
	found [sliceKeys]found
	next  int // index of the key that take is for
	n     int // how many keys there are
}

// take returns where the next key is. There must be one.
func (a *prefetch) take() found {
	a.next++
	return a.found[a.next-1]
}

// gather sets the keys of a to those of the next writes.
func (a *prefetch) gather(writes []ledger.AccountWrite, todo []uint64) {
	a.next, a.n = 0, 0
	for _, w := range todo[:min(len(todo), sliceKeys)] {
		key := &writes[w].Pubkey
		if a.n == 0 || *key != a.keys[a.n-1] {
			a.keys[a.n] = *key
			a.n++
		}
	}
}

// findAll is find for all keys of a. The results are valid until another key is written or something is folded.
func (t *accounts) findAll(a *prefetch) {
	t.overlay.findAll(a, &t.prefetchSink)
	var missing [sliceKeys]packed.Lookup // the keys that are not in the overlay
	var at [sliceKeys]int                // and their indexes in a
	n := 0
	for i := range a.n {
		if f := &a.found[i]; f.head == 0 {
			missing[n].Key, at[n] = &a.keys[i], i
			n++
		} else if w := t.overlay.written.at(f.head); w.token != 0 {
			t.prefetchSink += t.overlay.tokens.at(w.token).Amount
		}
	}
	t.prefetchSink += t.base.FindAll(missing[:n])
	for i := range n {
		a.found[at[i]].base = missing[i].Ref
	}
}

// findAll is find for all keys of a. It adds to prefetchSink what it reads, so that the reads are not optimized away.
func (o *versions) findAll(a *prefetch, prefetchSink *uint64) {
	sum := uint64(0)
	for i := range a.n {
		hash := arena.HashOf(&a.keys[i])
		a.found[i] = found{bucket: bucket{hash: hash}}
		if part := o.heads.Part(hash); part.Used > 0 {
			at, _ := part.First(hash)
			sum += part.Entries[at]
		}
	}
	for i := range a.n {
		b := &a.found[i].bucket
		if *b = o.probe(b.hash, nil); b.head != 0 {
			w := o.written.at(b.head) // of this key or another one with its hash
			sum += uint64(w.key[0]) + w.term[0] + uint64(w.version) + uint64(w.depth)
		}
	}
	for i := range a.n {
		b := &a.found[i].bucket
		if b.head != 0 && o.written.at(b.head).key != a.keys[i] {
			*b = o.find(&a.keys[i])
		}
	}
	*prefetchSink += sum
}
