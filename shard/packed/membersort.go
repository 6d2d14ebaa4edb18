package packed

import "ledgerd/shard/arena"

// member is a future entry of an index: the group, the first 4 bytes of the account's key, its record.
type member struct {
	group, start uint32
	ref          arena.Ref
}

// byGroup returns the members sorted by group; it is a stable radix sort. It allocates a second slice of the same
// size and uses the first as scratch.
func byGroup(members []member) []member {
	const bits = 11 // of one pass: the write positions of 2^11 counters stay in the processor's caches
	var all uint32
	for i := range members {
		all |= members[i].group
	}
	to := make([]member, len(members))
	for shift := 0; shift < 32 && all>>shift != 0; shift += bits {
		var at [1 << bits]int
		for i := range members {
			at[members[i].group>>shift%(1<<bits)]++
		}
		sum := 0
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, m := range members {
			digit := m.group >> shift % (1 << bits)
			to[at[digit]] = m
			at[digit]++
		}
		members, to = to, members
	}
	return members
}
