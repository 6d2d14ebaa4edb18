package chain

import (
	"slices"

	"ledgerd/engine/ledger"
)

// Blocks whose parent is unknown wait up to these bounds before the gap rule applies.
const (
	maxWaitingSlots = 64
	MaxWaitingBytes = 64 << 20
	// maxStreamBytes bounds the waiting blocks of a stream, which wait while what is missing is asked for.
	maxStreamBytes = 256 << 20
)

// Waiting are the blocks whose parent has not arrived, in slot order.
type Waiting []*Node

// Len returns how many blocks wait.
func (w Waiting) Len() int { return len(w) }

// WaitsTooLong reports whether blocks waited longer than they may.
func (c *Chain) WaitsTooLong() bool {
	n, bytes := len(c.Waiting), 0
	for _, w := range c.Waiting {
		bytes += w.Block.SizeBytes()
	}
	if c.Stream {
		return bytes > maxStreamBytes
	}
	return bytes > MaxWaitingBytes || n > 0 && c.Waiting[n-1].Slot()-c.Waiting[0].Slot() >= maxWaitingSlots
}

// WaitingChild takes out the lowest waiting block that builds on the block named, nil if there is none.
func (c *Chain) WaitingChild(parent ledger.BlockID) *Node {
	for i, n := range c.Waiting {
		if buildsOn(n.Block, parent) {
			c.Waiting = slices.Delete(c.Waiting, i, i+1)
			return n
		}
	}
	return nil
}

// LowestWaiting takes out the waiting block of the lowest slot. There must be one.
func (c *Chain) LowestWaiting() *Node {
	n := c.Waiting[0]
	c.Waiting = slices.Delete(c.Waiting, 0, 1)
	return n
}
