package arena

import (
	"math/rand/v2"
	"testing"
)

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
