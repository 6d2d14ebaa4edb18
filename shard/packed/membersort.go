package packed

import "ledgerd/shard/arena"

// member is one entry of an index to be: the group, the start of the account's key, its record.
type member struct {
	group, start uint32
	ref          arena.Ref
}

// byGroup brings members in the order of their groups. Those of one group stay in the order in
// which they come. It needs the memory of the members once more and leaves them out of order.
func byGroup(members []member) []member {
	const bits = 11 // at a time: the places to put to stay within the processor's caches
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
