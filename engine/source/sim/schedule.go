package sim

import (
	"time"

	"ledgerd/engine/ledger"
)

// firstSlot is the slot of the first block; base state stands at the slot before it.
const firstSlot ledger.Slot = 1

// groupSlots is how many slots in a row have one leader. A branch and the block that
// wins over it lie within one group, so that a look at the group of a slot
// tells all about it.
const groupSlots = 4

// genesisTime is the time of slot 0: 2026-01-01T00:00:00Z.
const genesisTime = 1767225600

// slotKind says what happens in a slot.
type slotKind uint8

const (
	skippedSlot slotKind = iota // no block
	mainBlock                   // a block of the chain that stays; after a branch, the one that wins
	branchBlock                 // a block of a branch that will be abandoned
)

// schedule says what happens in each slot, from nothing but the seed and the slot.
type schedule struct {
	*params
	paymentsDue, votesDue uint64 // per slot, in millionths
	validators            uint64
}

func newSchedule(p *params, validators uint32) schedule {
	due := p.duePerSlot(p.tps)
	return schedule{p, due, mulDivMillion(due, p.votes), uint64(validators)}
}

// kind returns what happens in a slot from firstSlot on.
func (s *schedule) kind(slot ledger.Slot) slotKind {
	if first, depth, ok := s.fork(uint64(slot) / groupSlots); ok {
		switch at := uint64(slot) % groupSlots; {
		case at >= first && at < first+depth:
			return branchBlock
		case at == first+depth:
			return mainBlock
		}
	}
	if slot != firstSlot && scale(chosen(s.seed, choosesSkip, uint64(slot)), million) < s.skipRate {
		return skippedSlot
	}
	return mainBlock
}

// fork returns the branch within a group of slots, if there is one: the place in the group
// of its first block, and how many blocks it has. The place after them is the winner's.
func (s *schedule) fork(group uint64) (first, depth uint64, ok bool) {
	// In the first group nothing need stand before the branch.
	if group == 0 || scale(chosen(s.seed, choosesFork, group), million) >= groupSlots*s.forkRate {
		return 0, 0, false
	}
	shape := chosen(s.seed, choosesForkShape, group)
	depth = 1 + shape%(groupSlots-1)
	first = (shape >> 32) % (groupSlots - depth)
	return first, depth, true
}

// leader returns which validator leads a slot.
func (s *schedule) leader(slot ledger.Slot) uint32 {
	return uint32(scale(chosen(s.seed, choosesLeader, uint64(slot)/groupSlots), s.validators))
}

// dueBetween returns how many transactions of a rate in millionths became due after the parent's slot, up to the slot:
// floor(slot×rate) − floor(parent×rate), without ever multiplying two large numbers. Over any chain of blocks they add up
// to the exact rate.
func dueBetween(rate uint64, slot, parent ledger.Slot) uint64 {
	carried := uint64(parent) % million * (rate % million) % million
	return (uint64(slot-parent)*rate + carried) / million
}

// time returns the block time of a slot in Unix seconds.
func (s *schedule) time(slot ledger.Slot) int64 {
	return genesisTime + int64(uint64(slot)*uint64(s.slotLength()/time.Millisecond)/1000)
}

// mulDivMillion returns a×b÷10^6, rounded down, for a below 10^13 and b up to 10^8.
func mulDivMillion(a, b uint64) uint64 { return a/million*b + a%million*b/million }
