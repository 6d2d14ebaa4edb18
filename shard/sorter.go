package shard

import "slices"

// pile is a list that grows without being copied.
type pile[V any] struct{ chunks [][]V }

// A pile's chunks grow from the first size to the last, so that a short one takes little.
const firstChunk, lastChunk = 8, 4096

func (p *pile[V]) add(v V) {
	n := len(p.chunks) - 1
	if n < 0 || len(p.chunks[n]) == cap(p.chunks[n]) {
		size := firstChunk
		if n >= 0 {
			size = min(2*cap(p.chunks[n]), lastChunk)
		}
		p.chunks = append(p.chunks, make([]V, 0, size))
		n++
	}
	p.chunks[n] = append(p.chunks[n], v)
}

// sorter brings values nearly in the order of their keys: by the first five bytes, and
// those of which these are equal in the order in which they come. A tree that is loaded
// with them puts the few others in their place. The values are spread by the
// first byte, so that each part is sorted within the processor's caches.
type sorter[V any] struct {
	prefix func(V) uint64 // of the key
	parts  [256]pile[V]
}

// placeBits is how much of a number to sort by is the place among a part's values; the rest
// is what follows the first byte of the key.
const placeBits = 32

func (s *sorter[V]) add(v V) { s.parts[s.prefix(v)>>56].add(v) }

// ascend visits all values, once: it lets go of them.
func (s *sorter[V]) ascend(visit func(V)) {
	var values []V
	var order []uint64
	for part := range s.parts {
		values, order = values[:0], order[:0]
		for _, chunk := range s.parts[part].chunks {
			for _, v := range chunk {
				order = append(order, s.prefix(v)<<8>>placeBits<<placeBits|uint64(len(values)))
				values = append(values, v)
			}
		}
		s.parts[part] = pile[V]{}
		slices.Sort(order)
		for _, o := range order {
			visit(values[uint32(o)])
		}
	}
}

// member is one entry of an index to be: the group, the start of the account's key, its record.
type member struct {
	group, start uint32
	ref          ref
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
