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

// WaitingChild removes and returns the lowest waiting block that builds on parent, nil if there is none.
func (c *Chain) WaitingChild(parent ledger.BlockID) *Node {
	for i, n := range c.Waiting {
		if buildsOn(n.Block, parent) {
			c.Waiting = slices.Delete(c.Waiting, i, i+1)
			return n
		}
	}
	return nil
}

// Gap returns what a stream has to show before the waiting blocks can join the tree: first what is missing below a
// confirmed one, and of two gaps the lower one. A parent that the stream still expects is no gap, unless a block that builds
// on it is confirmed. It returns a ContradictionError where a confirmed block can never find its parent.
func (c *Chain) Gap(expects func(ledger.Slot) bool) (found ledger.Opt[ledger.Gap], err error) {
	root, confirmed := c.Finalized.ID(), c.Confirmed.ID()
	for _, w := range c.Waiting {
		parent, sure := w.Block.ParentSlot, w.Claimed >= ledger.Confirmed
		switch {
		case c.waitingParent(w) != nil, w.Dead && !sure:
			continue
		case !sure && (parent <= confirmed.Slot || expects(parent)): // it belongs to an abandoned branch, or its parent may come
			continue
		case parent < root.Slot, parent == root.Slot && w.Block.PreviousBlockhash.Known:
			return found, Contradicts(strayed, w.Slot(), parent, root.Slot)
		case parent <= confirmed.Slot:
			return ledger.Some(ledger.Gap{After: root, UpTo: parent, Confirmed: true}), nil
		}
		if g := found.Value; !found.Known || sure && !g.Confirmed || sure == g.Confirmed && parent < g.UpTo {
			found = ledger.Some(ledger.Gap{After: confirmed, UpTo: parent, Confirmed: sure})
		}
	}
	return found, nil
}

// ClaimParents notes that the waiting blocks below a confirmed one are confirmed as well.
func (c *Chain) ClaimParents() {
	for _, w := range slices.Backward(c.Waiting) { // children come first
		if p := c.waitingParent(w); p != nil && w.Claimed >= ledger.Confirmed {
			p.Claimed = max(p.Claimed, ledger.Confirmed)
		}
	}
}

// waitingParent returns the waiting block that w builds on, nil if there is none.
func (c *Chain) waitingParent(w *Node) *Node {
	return c.waitingAt(w.Block.ParentSlot, w.Block.PreviousBlockhash)
}

// waitingAt returns the first waiting block at a slot with a hash, or with any hash if hash is not known; nil if there is none.
func (c *Chain) waitingAt(slot ledger.Slot, hash ledger.Opt[ledger.Hash]) *Node {
	for _, w := range c.Waiting {
		if isAt(w.ID(), slot, hash) {
			return w
		}
	}
	return nil
}

// Candidate returns the lowest waiting block that may be the first of a stream: it is confirmed, and another builds on it,
// so it is no wrong block of its slot. It returns nil if there is none yet.
func (c *Chain) Candidate() *Node {
	for _, w := range c.Waiting {
		builds := func(child *Node) bool { return child != w && buildsOn(child.Block, w.ID()) }
		if w.Claimed >= ledger.Confirmed && !w.Dead && slices.ContainsFunc(c.Waiting, builds) {
			return w
		}
	}
	return nil
}

// IsContested reports whether two blocks were shown at a slot, of which none was called dead.
func (c *Chain) IsContested(slot ledger.Slot) bool {
	shown := 0
	for _, n := range slices.Concat(c.nodes[slot], c.Waiting) {
		if n.Slot() == slot && !n.IsGivenUp() {
			shown++
		}
	}
	return shown > 1
}
