package arena

import (
	"math/rand/v2"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// TestInternedKeysAreCounted uses and drops keys at random and compares with a map of counts.
func TestInternedKeysAreCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var in Keys
	counts, given := make(map[ledger.Pubkey]int), make(map[ledger.Pubkey]Ref)
	for step := range 100_000 {
		k := ledgertest.Key(r.IntN(1 + step/50%700))
		if n := counts[k]; n > 0 && r.IntN(2) == 0 {
			in.Drop(given[k])
			counts[k]--
			continue
		}
		name := in.Use(&k)
		if counts[k] > 0 && given[k] != name {
			t.Fatalf("step %d: a key has two names", step)
		}
		counts[k]++
		given[k] = name
	}
	for k, n := range counts {
		name, found := in.Find(&k)
		if found != (n > 0) || found && (name != given[k] || in.Names.At(name).Pubkey != k) {
			t.Errorf("%s is name %d (%v), want %d, counted %d", k, name, found, given[k], n)
		}
		for range n {
			in.Drop(given[k])
		}
		if _, found := in.Find(&k); found {
			t.Errorf("%s is found when nothing has it", k)
		}
	}
	if in.Names.Taken() != 0 || len(counts) == 0 {
		t.Errorf("%d names are taken after all of %d were dropped", in.Names.Taken(), len(counts))
	}
}

// bucketOf returns the bucket of a number, or the empty one where a search for it ends.
func bucketOf(p *Part, hash, number uint32) int {
	at, mask := p.First(hash)
	for p.Entries[at] != 0 && uint32(p.Entries[at]) != number {
		at = (at + 1) & mask
	}
	return at
}

// TestHashTableEqualsPlainMap adds, replaces and removes numbers, many of which have similar hashes, first more and then less.
// No part may become long: a part that is resized stalls whoever adds an entry by its length.
func TestHashTableEqualsPlainMap(t *testing.T) {
	const steps = 200_000
	r := rand.New(rand.NewPCG(1, 1))
	var table HashTable
	hashes := make(map[uint32]uint32) // of the numbers in the table
	next, longest := uint32(0), 0
	for step := range steps {
		if next++; len(hashes) == 0 || r.IntN(steps) > step {
			hash := r.Uint32() &^ 0xf0
			part := table.Part(hash)
			part.Grow()
			part.Add(bucketOf(part, hash, next), hash, next)
			hashes[next] = hash
			longest = max(longest, len(part.Entries))
			continue
		}
		for number, hash := range hashes { // any
			part := table.Part(hash)
			if delete(hashes, number); step%3 > 0 {
				part.Remove(bucketOf(part, hash, number))
			} else {
				part.Replace(step%2*bucketOf(part, hash, number), hash, number, next)
				hashes[next] = hash
			}
			break
		}
		if step%10_000 > 1 {
			continue
		}
		for number, hash := range hashes {
			if part := table.Part(hash); part.Entries[bucketOf(part, hash, number)] != uint64(hash)<<32|uint64(number) {
				t.Fatalf("step %d: number %d is not found", step, number)
			}
		}
		if table.Len() != len(hashes) {
			t.Fatalf("step %d: %d entries, want %d", step, table.Len(), len(hashes))
		}
	}
	if longest == 0 || longest > steps/64 {
		t.Errorf("a part had %d buckets", longest)
	}
}
