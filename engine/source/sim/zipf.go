package sim

import (
	"math"
	"math/bits"
	"slices"
)

// zipf draws positions by their rank: position r, from 0, is drawn in proportion to
// (r+1)^-s. The weights are computed in integers, because powers of floats differ in
// the last bit between machines.
type zipf []uint64 // by rank: the weight of all ranks up to it

// newZipf prepares the draw among n positions with exponent s in ten-thousandths.
func newZipf(n int, s uint64) zipf {
	z := make(zipf, n)
	sum := uint64(0)
	for i := range z {
		// A weight of at least 1 keeps even the last rank possible.
		sum += max(1, power(log2(uint64(i+1))*s/zipfUnit)>>weightShift)
		z[i] = sum
	}
	return z
}

// draw returns a position from 0 to n-1.
func (z zipf) draw(r *random) uint64 {
	at := r.below(z[len(z)-1])
	// The first rank whose cumulative weight is above at.
	i, _ := slices.BinarySearch(z, at+1)
	return uint64(i)
}

const (
	// fractionBits is the precision of logarithms.
	fractionBits = 32
	// unitBits is the precision of powers: 1 is 1<<unitBits.
	unitBits = 62
	// weightShift leaves weights of 38 bits, so that the sum over every account that can
	// be fits in 64.
	weightShift = unitBits - 38
)

// log2 returns the binary logarithm of x, which is not 0, in units of 2^-32.
func log2(x uint64) uint64 {
	whole := bits.Len64(x) - 1
	m := x << (63 - whole) // x as 1.63 fixed point, from 1 to below 2
	result := uint64(whole)
	for range fractionBits {
		result <<= 1
		high, low := bits.Mul64(m, m) // m² as 2.126
		if high>>63 == 1 {
			result |= 1
			m = high
		} else {
			m = high<<1 | low>>63
		}
	}
	return result
}

// power returns 2^-y, with y in units of 2^-32, in units of 2^-62.
func power(y uint64) uint64 {
	p := uint64(1) << unitBits
	for i := range fractionBits {
		if y>>(fractionBits-1-i)&1 == 1 {
			high, low := bits.Mul64(p, roots[i])
			p = high<<(64-unitBits) | low>>unitBits
		}
	}
	return p >> (y >> fractionBits) // shifts of 64 and more give 0
}

// roots are 2^-(1/2), 2^-(1/4), 2^-(1/8) … in units of 2^-62. Square roots, unlike
// other functions of floats, are rounded alike everywhere.
var roots = halfPowers()

func halfPowers() (roots [fractionBits]uint64) {
	root := 0.5
	for i := range roots {
		root = math.Sqrt(root)
		roots[i] = uint64(root * (1 << unitBits))
	}
	return roots
}
