package sim

import (
	"math/bits"
	"math/rand/v2"
)

// purpose keeps apart the random choices made from one number.
type purpose uint64

const (
	choosesSkip purpose = iota + 1
	choosesFork
	choosesForkShape
	choosesLeader
	choosesContent
	choosesOwner
	choosesIssuer
	choosesBalance
)

// mix spreads a number over 64 bits so that neighbours have nothing in common. It is
// the finalizer of SplitMix64, a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chosen returns the random number of a seed for the n-th choice of a purpose. It needs
// no state, so whoever resumes finds the same.
func chosen(seed uint64, p purpose, n uint64) uint64 { return mix(mix(mix(seed)+uint64(p)) + n) }

// scale maps a random 64-bit number to 0…n-1.
func scale(random, n uint64) uint64 {
	high, _ := bits.Mul64(random, n)
	return high
}

// random is the stream of random numbers that one block is made of.
type random struct{ pcg rand.PCG }

// start begins the stream of a slot.
func (r *random) start(seed, slot uint64) {
	r.pcg.Seed(chosen(seed, choosesContent, 2*slot), chosen(seed, choosesContent, 2*slot+1))
}

// below returns a number from 0 to n-1.
func (r *random) below(n uint64) uint64 { return scale(r.pcg.Uint64(), n) }

// coin is true as often as the rate in millionths says.
func (r *random) coin(rate uint64) bool { return r.below(million) < rate }
