package shard

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// # Looking ahead
//
// Of a million accounts hardly one is in the processor's caches, and to look one up is to wait for
// memory some ten times: at each step for what the step before has named. So a block's keys are looked
// up many at once, all of them one step and then all of them the next. The processor waits for
// many lines of memory at a time, which took a tenth off what a write costs (BenchmarkApply).

// ahead is where the next keys of a block are.
type ahead struct {
	keys   [sliceKeys]ledger.Pubkey // all different
	places [sliceKeys]found
	next   int // of those that are not asked for yet
	n      int
}

// take returns the place of the next key. There must be one.
func (a *ahead) take() found {
	a.next++
	return a.places[a.next-1]
}

// gather fills a with the keys of the next writes.
func (a *ahead) gather(writes []ledger.AccountWrite, todo []keyedWrite) {
	a.next, a.n = 0, 0
	for _, w := range todo[:min(len(todo), sliceKeys)] {
		key := &writes[w.at].Pubkey
		if a.n == 0 || *key != a.keys[a.n-1] {
			a.keys[a.n] = *key
			a.n++
		}
	}
}

// findAll is find for all the keys of a, whose places are good until something else is written or
// anything is folded.
func (t *accounts) findAll(a *ahead) {
	t.overlay.findAll(a, &t.touched)
	var missing [sliceKeys]packed.Lookup // what the overlay has not
	var at [sliceKeys]int                // and where in a
	n := 0
	for i := range a.n {
		if f := &a.places[i]; f.head == 0 {
			missing[n].Key, at[n] = &a.keys[i], i
			n++
		} else if w := t.overlay.written.at(f.head); w.token != 0 {
			t.touched += t.overlay.tokens.at(w.token).Amount
		}
	}
	t.touched += t.base.FindAll(missing[:n])
	for i := range n {
		a.places[at[i]].base = missing[i].Ref
	}
}

// findAll is find for all the keys of a.
func (o *versions) findAll(a *ahead, touched *uint64) {
	sum := uint64(0)
	for i := range a.n {
		p := place{hash: arena.HashOf(&a.keys[i])}
		if part := o.heads.Part(p.hash); part.Used > 0 {
			p.at, _ = part.First(p.hash)
			sum += part.Entries[p.at]
		}
		a.places[i] = found{place: p}
	}
	for i := range a.n {
		p := &a.places[i].place
		part := o.heads.Part(p.hash)
		if part.Used == 0 {
			continue
		}
		for mask := len(part.Entries) - 1; ; p.at = (p.at + 1) & mask {
			e := part.Entries[p.at]
			if uint32(e>>32) == p.hash {
				p.head = position(e) // if it has the key; e may be 0
			}
			if e == 0 || p.head != 0 {
				break
			}
		}
		if p.head != 0 {
			w := o.written.at(p.head)
			sum += uint64(w.key[0]) + w.term[0] + uint64(w.version) + uint64(w.depth)
		}
	}
	for i := range a.n {
		p := &a.places[i].place
		if p.head != 0 && o.written.at(p.head).key != a.keys[i] {
			*p = o.find(&a.keys[i]) // two keys with one hash
		}
	}
	*touched += sum
}
