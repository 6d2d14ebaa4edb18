package arena

import "math"

// Ref is the number of a value in its chunks; 0 means none.
type Ref uint32

const (
	chunkBits = 11
	// chunkValues is how many values are allocated at once: some pages of memory for every type in use.
	chunkValues = 1 << chunkBits
)

// Chunks are values of one type, by number.
type Chunks[T any] []*[chunkValues]T

// At returns the value with number r, whose chunk must be allocated.
func (c Chunks[T]) At(r Ref) *T { return &c[r>>chunkBits][r%chunkValues] }

// Reach allocates the chunk of r if necessary. It must have been called for all numbers below r.
func (c *Chunks[T]) Reach(r Ref) {
	if int(r>>chunkBits) == len(*c) {
		made := new([chunkValues]T)
		// The chunk is written before it is read: the kernel maps new memory that is read first to the shared zero
		// page, and to replace that page at the first write it interrupts all processors. Starts with
		// 3 M accounts took 1.1 s instead of 1.5 s.
		clear(made[:])
		*c = append(*c, made)
	}
}

// Slots allocates numbers and reuses those that were given back.
type Slots struct {
	highest Ref // number that was ever taken
	free    []Ref
}

// Take returns a number that is not taken.
func (s *Slots) Take() Ref {
	if n := len(s.free); n > 0 {
		r := s.free[n-1]
		s.free = s.free[:n-1]
		return r
	}
	if s.highest == math.MaxUint32 {
		panic("a shard holds at most 2^32-1 records of a kind: the node needs more shards")
	}
	s.highest++
	return s.highest
}

// Give gives a number back, so that Take may return it again.
func (s *Slots) Give(r Ref) { s.free = append(s.free, r) }

// Taken returns how many numbers are taken.
func (s *Slots) Taken() int { return int(s.highest) - len(s.free) }

// Highest returns the highest number that was ever taken.
func (s *Slots) Highest() Ref { return s.highest }
