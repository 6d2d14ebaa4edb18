package arena

import "math"

// Ref is the number of a value in its chunks. 0 is none.
type Ref uint32

const (
	chunkBits = 11
	// chunkValues is how many values are allocated at once: some pages of memory, whatever their type.
	chunkValues = 1 << chunkBits
)

// Chunks are values of one type.
type Chunks[T any] []*[chunkValues]T

// At returns the value of a number that was reached.
func (c Chunks[T]) At(r Ref) *T { return &c[r>>chunkBits][r%chunkValues] }

// Reach allocates the chunk of r, unless it is there. All numbers before r were reached.
func (c *Chunks[T]) Reach(r Ref) {
	if int(r>>chunkBits) == len(*c) {
		made := new([chunkValues]T)
		// Written before anything reads it: the kernel backs new memory that is read with one page of zeros,
		// and to replace that by a page of its own at the first write it interrupts all processors. Starts with
		// 3 M accounts took 1.1 s instead of 1.5.
		clear(made[:])
		*c = append(*c, made)
	}
}

// Slots say which numbers are taken.
type Slots struct {
	highest Ref // that was ever taken
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

// Give makes a number free again.
func (s *Slots) Give(r Ref) { s.free = append(s.free, r) }

// Taken returns how many numbers are taken.
func (s *Slots) Taken() int { return int(s.highest) - len(s.free) }

// Highest returns the highest number that was ever taken.
func (s *Slots) Highest() Ref { return s.highest }
